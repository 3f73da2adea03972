#include "reports/trace_writer.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace stratagem::reports::trace_writer_test {
namespace {

using nlohmann::json;

std::vector<json> events_of(const json& document, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : document.at("traceEvents")) {
    if (event.at("ph") == phase) {
      events.push_back(event);
    }
  }
  return events;
}

json trace_of(const std::vector<TraceProcess>& processes) {
  return json::parse(trace_json(processes));
}

TEST(ActionName, IsTheSchedules) {
  EXPECT_EQ(action_name({0, "forward", 1, 0, 0, 1}), "F0 s1");
  EXPECT_EQ(action_name({0, "backward", 0, 12, 0, 1}), "B12 s0");
  EXPECT_EQ(action_name({0, "copy_activation", 1, 3, 0, 1}), "copy activation 3 s1");
  EXPECT_EQ(action_name({0, "optimizer", 1, -1, 0, 1}), "optimizer s1");
}

TEST(Trace, EventsAreInMicrosecondsUnderProcessAndThread) {
  const json document = trace_of({{"single", {{0, "forward", 0, 0, 1000.5, 1002}}},
                                  {"pipeline", {{1, "backward", 1, 2, 3, 4}}}});
  const std::vector<json> events = events_of(document, "X");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("name"), "F0 s0");
  EXPECT_EQ(events[0].at("cat"), "forward");
  EXPECT_DOUBLE_EQ(events[0].at("ts"), 1000500);
  EXPECT_DOUBLE_EQ(events[0].at("dur"), 1500);
  EXPECT_EQ(events[1].at("args"), json({{"stage", 1}, {"micro_batch", 2}}));
  EXPECT_NE(events[0].at("pid"), events[1].at("pid"));
  std::map<int, std::string> processes;
  std::set<std::string> threads;
  for (const json& event : events_of(document, "M")) {
    if (event.at("name") == "process_name") {
      processes[event.at("pid")] = event.at("args").at("name");
    } else {
      threads.insert(event.at("args").at("name"));
    }
  }
  EXPECT_EQ(processes.at(events[0].at("pid")), "single");
  EXPECT_EQ(processes.at(events[1].at("pid")), "pipeline");
  EXPECT_EQ(threads, (std::set<std::string>{"device 0", "device 1"}));
}

TEST(Trace, OverlappingActionsOfADeviceStandOnSeparateThreads) {
  const json document = trace_of({{"row",
                                   {{0, "forward", 0, 0, 0, 10},
                                    {0, "copy_activation", 0, 0, 5, 12},
                                    {0, "backward", 0, 0, 10, 20}}}});
  const std::vector<json> events = events_of(document, "X");
  EXPECT_EQ(events[0].at("tid"), events[2].at("tid"));
  EXPECT_NE(events[0].at("tid"), events[1].at("tid"));
}

TEST(Trace, NothingIsStillATrace) { EXPECT_TRUE(trace_of({}).at("traceEvents").empty()); }

}  // namespace
}  // namespace stratagem::reports::trace_writer_test
