#include "reports/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/atomic_file.h"
#include "reports/json_fields.h"

namespace stratagem::reports {
namespace {

using nlohmann::ordered_json;

const std::map<std::string, std::string>& letters() {
  static const std::map<std::string, std::string> known = {{"forward", "F"},
                                                           {"backward", "B"},
                                                           {"backward_input", "I"},
                                                           {"backward_weight", "W"},
                                                           {"recompute", "C"}};
  return known;
}

ordered_json metadata(const char* what, int process, int thread, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

ordered_json complete_event(const TimelineEvent& event, int process, int thread) {
  ordered_json arguments{{"stage", event.stage}};
  if (event.micro_batch >= 0) arguments["micro_batch"] = event.micro_batch;
  return {{"name", action_name(event)},
          {"cat", event.kind},
          {"ph", "X"},
          {"ts", 1e3 * event.start_ms},
          {"dur", 1e3 * (event.end_ms - event.start_ms)},
          {"pid", process},
          {"tid", thread},
          {"args", std::move(arguments)}};
}

// Threads of one process: a device's lanes, each with the end of its last event.
class Lanes {
 public:
  // Events must come in order of their start.
  int thread_for(const TimelineEvent& event) {
    std::vector<Lane>& lanes = devices_[event.device];
    auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& candidate) {
      return candidate.end_ms <= event.start_ms;
    });
    if (lane == lanes.end()) lane = lanes.insert(lanes.end(), Lane{next_thread_++, 0});
    lane->end_ms = event.end_ms;
    return lane->thread;
  }

  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& [device, lanes] : devices_) {
      for (std::size_t index = 0; index < lanes.size(); ++index) {
        visit(lanes[index].thread, index == 0 ? fmt::format("device {}", device)
                                              : fmt::format("device {} ({})", device, index + 1));
      }
    }
  }

 private:
  struct Lane {
    int thread = 0;
    double end_ms = 0;
  };

  std::map<int, std::vector<Lane>> devices_;
  int next_thread_ = 1;
};

void add_process(ordered_json& events, const TraceProcess& process, int number) {
  events.push_back(metadata("process_name", number, 0, process.name));
  std::vector<TimelineEvent> ordered = process.events;
  std::stable_sort(
      ordered.begin(), ordered.end(),
      [](const TimelineEvent& a, const TimelineEvent& b) { return a.start_ms < b.start_ms; });
  Lanes lanes;
  for (const TimelineEvent& event : ordered) {
    events.push_back(complete_event(event, number, lanes.thread_for(event)));
  }
  lanes.each([&](int thread, const std::string& name) {
    events.push_back(metadata("thread_name", number, thread, name));
  });
}

}  // namespace

std::string action_name(const TimelineEvent& event) {
  const auto letter = letters().find(event.kind);
  std::string name = event.kind;
  std::replace(name.begin(), name.end(), '_', ' ');
  if (letter != letters().end()) name = letter->second;
  if (event.micro_batch >= 0) {
    name += fmt::format("{}{}", letter == letters().end() ? " " : "", event.micro_batch);
  }
  return fmt::format("{} s{}", name, event.stage);
}

std::string trace_json(std::span<const TraceProcess> processes) {
  ordered_json events = ordered_json::array();
  int number = 1;
  for (const TraceProcess& process : processes) add_process(events, process, number++);
  const ordered_json document{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  json_fields::require_finite(document, "");
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void write_trace(const std::string& path, std::span<const TraceProcess> processes) {
  write_file_atomically(path, trace_json(processes));
}

}  // namespace stratagem::reports
