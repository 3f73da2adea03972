#include "reports/record_json.h"

#include <utility>

#include "reports/json_fields.h"

namespace stratagem::reports {

using json_fields::member;
using json_fields::read;
using json_fields::require_object;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

// The one list of a breakdown's parts.
template <class Self, class Visit>
void each_part(Self& breakdown, Visit&& visit) {
  visit("compute", breakdown.compute);
  visit("communication_exposed", breakdown.communication_exposed);
  visit("communication_hidden", breakdown.communication_hidden);
  visit("wait", breakdown.wait);
  visit("bubble", breakdown.bubble);
  visit("optimizer", breakdown.optimizer);
  visit("input_copy", breakdown.input_copy);
  visit("other", breakdown.other);
}

template <class T>
ordered_json list(const std::vector<T>& items) {
  ordered_json array = ordered_json::array();
  for (const T& item : items) {
    array.push_back(to_json(item));
  }
  return array;
}

template <class T, class Make>
std::vector<T> list_from(const json& value, const std::string& where, Make make) {
  if (!value.is_array()) {
    json_fields::wrong_type(where, "a list", value);
  }
  std::vector<T> items;
  items.reserve(value.size());
  for (std::size_t index = 0; index < value.size(); ++index) {
    items.push_back(make(value[index], where + "[" + std::to_string(index) + "]"));
  }
  return items;
}

std::map<std::string, CollectiveCount> communication_from_json(const json& value,
                                                               const std::string& where) {
  require_object(value, where);
  std::map<std::string, CollectiveCount> counts;
  for (const auto& [name, item] : value.items()) {
    const std::string place = where + "." + name;
    require_object(item, place);
    CollectiveCount& count = counts[name];
    read(item, "calls", place, count.calls);
    read(item, "payload_bytes", place, count.payload_bytes);
    read(item, "wire_bytes", place, count.wire_bytes);
  }
  return counts;
}

ordered_json communication_json(const std::map<std::string, CollectiveCount>& counts) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, count] : counts) {
    object[name] = to_json(count);
  }
  return object;
}

}  // namespace

ordered_json to_json(const TimelineEvent& event) {
  return {{"device", event.device},     {"kind", event.kind},
          {"stage", event.stage},       {"micro_batch", event.micro_batch},
          {"start_ms", event.start_ms}, {"end_ms", event.end_ms}};
}

ordered_json to_json(const std::vector<TimelineEvent>& timeline) { return list(timeline); }

ordered_json to_json(const Breakdown& breakdown) {
  ordered_json object;
  each_part(breakdown, [&](const char* name, double value) { object[name] = value; });
  return object;
}

ordered_json to_json(const DeviceRecord& device) {
  return {{"rank", device.rank},
          {"device", device.device},
          {"breakdown_ms", to_json(device.breakdown_ms)},
          {"bubble", {{"measured", device.bubble_measured}, {"ideal", device.bubble_ideal}}},
          {"peak_memory_bytes", device.peak_memory_bytes}};
}

ordered_json to_json(const CollectiveCount& count) {
  return {{"calls", count.calls},
          {"payload_bytes", count.payload_bytes},
          {"wire_bytes", count.wire_bytes}};
}

ordered_json to_json(const Verification& verification) {
  return {{"oracle", verification.oracle},
          {"scope", verification.scope},
          {"max_relative_error", verification.max_relative_error},
          {"tolerance", verification.tolerance},
          {"passed", verification.passed},
          {"message", verification.message}};
}

ordered_json to_json(const Error& error) {
  return {{"rank", error.rank},
          {"host", error.host},
          {"last_action", error.last_action},
          {"message", error.message}};
}

ordered_json to_json(const Repetition& repetition) {
  ordered_json object{
      {"index", repetition.index},
      {"step_ms", repetition.step_ms},
      {"per_rank_ms", repetition.per_rank_ms},
      {"cpu_ms", repetition.cpu_ms},
      {"devices", list(repetition.devices)},
      {"timeline", list(repetition.timeline)},
      {"predicted_ms", or_null(repetition.predicted_ms)},
      {"predicted_from_two_splits_ms", or_null(repetition.predicted_from_two_splits_ms)},
      {"communication", communication_json(repetition.communication)},
      {"flops_per_step", repetition.flops_per_step},
      {"mfu", or_null(repetition.mfu)},
      {"loss", repetition.loss}};
  object["verification"] =
      repetition.verification ? to_json(*repetition.verification) : ordered_json(nullptr);
  object["error"] = repetition.error ? to_json(*repetition.error) : ordered_json(nullptr);
  object["marks"] = repetition.marks;
  if (!repetition.counters.empty()) object["counters"] = repetition.counters;
  json_fields::require_finite(object, "repetition");
  return object;
}

ordered_json to_json(const Values& values) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : values) {
    ordered_json& entry = object[name];
    std::visit(
        [&entry](const auto& item) {
          if constexpr (std::is_same_v<std::decay_t<decltype(item)>, std::monostate>) {
            entry = nullptr;
          } else {
            entry = item;
          }
        },
        value);
  }
  return object;
}

TimelineEvent timeline_event_from_json(const json& value, const std::string& where) {
  require_object(value, where);
  TimelineEvent event;
  read(value, "device", where, event.device);
  read(value, "kind", where, event.kind);
  read(value, "stage", where, event.stage);
  read(value, "micro_batch", where, event.micro_batch);
  read(value, "start_ms", where, event.start_ms);
  read(value, "end_ms", where, event.end_ms);
  return event;
}

std::vector<TimelineEvent> timeline_from_json(const json& value, const std::string& where) {
  return list_from<TimelineEvent>(value, where, timeline_event_from_json);
}

DeviceRecord device_record_from_json(const json& value, const std::string& where) {
  require_object(value, where);
  DeviceRecord device;
  read(value, "rank", where, device.rank);
  read(value, "device", where, device.device);
  if (const json* parts = member(value, "breakdown_ms")) {
    require_object(*parts, where + ".breakdown_ms");
    each_part(device.breakdown_ms, [&](const char* name, double& target) {
      read(*parts, name, where + ".breakdown_ms", target);
    });
  }
  if (const json* bubble = member(value, "bubble")) {
    require_object(*bubble, where + ".bubble");
    read(*bubble, "measured", where + ".bubble", device.bubble_measured);
    read(*bubble, "ideal", where + ".bubble", device.bubble_ideal);
  }
  read(value, "peak_memory_bytes", where, device.peak_memory_bytes);
  return device;
}

Verification verification_from_json(const json& value, const std::string& where) {
  require_object(value, where);
  Verification verification;
  read(value, "oracle", where, verification.oracle);
  read(value, "scope", where, verification.scope);
  read(value, "max_relative_error", where, verification.max_relative_error);
  read(value, "tolerance", where, verification.tolerance);
  read(value, "passed", where, verification.passed);
  read(value, "message", where, verification.message);
  return verification;
}

Error error_from_json(const json& value, const std::string& where) {
  require_object(value, where);
  Error error;
  read(value, "rank", where, error.rank);
  read(value, "host", where, error.host);
  read(value, "last_action", where, error.last_action);
  read(value, "message", where, error.message);
  return error;
}

Repetition repetition_from_json(const json& value, const std::string& where) {
  require_object(value, where);
  Repetition repetition;
  read(value, "index", where, repetition.index);
  read(value, "step_ms", where, repetition.step_ms);
  read(value, "per_rank_ms", where, repetition.per_rank_ms);
  read(value, "cpu_ms", where, repetition.cpu_ms);
  if (const json* devices = member(value, "devices")) {
    repetition.devices =
        list_from<DeviceRecord>(*devices, where + ".devices", device_record_from_json);
  }
  if (const json* timeline = member(value, "timeline")) {
    repetition.timeline = timeline_from_json(*timeline, where + ".timeline");
  }
  read(value, "predicted_ms", where, repetition.predicted_ms);
  read(value, "predicted_from_two_splits_ms", where, repetition.predicted_from_two_splits_ms);
  if (const json* counts = member(value, "communication")) {
    repetition.communication = communication_from_json(*counts, where + ".communication");
  }
  read(value, "flops_per_step", where, repetition.flops_per_step);
  read(value, "mfu", where, repetition.mfu);
  read(value, "loss", where, repetition.loss);
  if (const json* verification = member(value, "verification")) {
    repetition.verification = verification_from_json(*verification, where + ".verification");
  }
  if (const json* error = member(value, "error")) {
    repetition.error = error_from_json(*error, where + ".error");
  }
  read(value, "marks", where, repetition.marks);
  if (const json* counters = member(value, "counters")) {
    for (const auto& [name, number] : counters->items()) {
      read(*counters, name.c_str(), where + ".counters", repetition.counters[name]);
    }
  }
  return repetition;
}

Values values_from_json(const ordered_json& value, const std::string& where) {
  if (!value.is_object()) {
    json_fields::wrong_type(where, "an object", json(value));
  }
  Values values;
  for (const auto& [name, item] : value.items()) {
    if (item.is_null()) {
      values.emplace_back(name, std::monostate{});
    } else if (item.is_boolean()) {
      values.emplace_back(name, item.get<bool>());
    } else if (item.is_number_integer()) {
      values.emplace_back(name, item.get<std::int64_t>());
    } else if (item.is_number_float()) {
      values.emplace_back(name, item.get<double>());
    } else if (item.is_string()) {
      values.emplace_back(name, item.get<std::string>());
    } else {
      json_fields::wrong_type(where + "." + name, "a single value", json(item));
    }
  }
  return values;
}

}  // namespace stratagem::reports
