#include "reports/record_json.h"

#include <type_traits>

#include "reports/json_fields.h"
#include "reports/record_fields.h"

namespace stratagem::reports {

using json_fields::json_of;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

template <class T>
T parsed(const json& value, const std::string& where) {
  T target;
  json_fields::convert(value, where, target);
  return target;
}

}  // namespace

ordered_json to_json(const std::vector<TimelineEvent>& timeline) { return json_of(timeline); }

ordered_json to_json(const DeviceRecord& device) { return json_of(device); }

ordered_json to_json(const Verification& verification) { return json_of(verification); }

ordered_json to_json(const Repetition& repetition) {
  ordered_json object = json_of(repetition);
  if (repetition.counters.empty()) object.erase("counters");
  json_fields::require_finite(object, "repetition");
  return object;
}

ordered_json to_json(const Values& values) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : values) {
    ordered_json& entry = object[name];
    std::visit(
        [&entry](const auto& item) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(item)>, std::monostate>) entry = item;
        },
        value);
  }
  return object;
}

std::vector<TimelineEvent> timeline_from_json(const json& value, const std::string& where) {
  return parsed<std::vector<TimelineEvent>>(value, where);
}

DeviceRecord device_record_from_json(const json& value, const std::string& where) {
  return parsed<DeviceRecord>(value, where);
}

Verification verification_from_json(const json& value, const std::string& where) {
  return parsed<Verification>(value, where);
}

Repetition repetition_from_json(const json& value, const std::string& where) {
  return parsed<Repetition>(value, where);
}

}  // namespace stratagem::reports
