// What was performed, when and on which thread: for tests of whoever runs schedules.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "strategies/schedules/schedule.h"
#include "tests/strategies/cpu_devices.h"

namespace stratagem::schedules {

/// Safe to write from every device.
class Log {
 public:
  struct Entry {
    Action action;
    std::chrono::steady_clock::time_point start;
    std::chrono::steady_clock::time_point end;
    std::thread::id thread;
  };

  void perform(const Action& action, int milliseconds = 0) {
    const auto start = std::chrono::steady_clock::now();
    if (milliseconds > 0) runtime::sleep_ms(milliseconds);
    const std::lock_guard lock(mutex_);
    entries_.push_back(
        {action, start, std::chrono::steady_clock::now(), std::this_thread::get_id()});
  }

  std::vector<Entry> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

  bool contains(const Action& action) const {
    const auto all = entries();
    return std::ranges::find(all, action, &Entry::action) != all.end();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// That every action ran once, in the order of its device, or of its stream where copies have one
/// of their own, and after the end of all that it needs.
inline void expect_in_order(const Schedule& schedule, const Log& log,
                            bool separate_copy_stream = false) {
  const auto entries = log.entries();
  std::map<Action, Log::Entry> by_action;
  for (const auto& entry : entries) {
    EXPECT_TRUE(by_action.emplace(entry.action, entry).second) << to_string(entry.action);
  }
  std::size_t count = 0;
  for (const auto& actions : schedule.actions) {
    count += actions.size();
    std::map<bool, Log::Entry> last;  // of each stream
    for (const Action& action : actions) {
      ASSERT_TRUE(by_action.contains(action)) << to_string(action) << " did not run";
      const auto& entry = by_action.at(action);
      const bool copies = separate_copy_stream && is_copy(action.kind);
      if (last.contains(copies)) {
        EXPECT_LE(last.at(copies).end, entry.start) << to_string(action);
        EXPECT_EQ(last.at(copies).thread, entry.thread) << to_string(action);
      }
      last.insert_or_assign(copies, entry);
      for (const Action& needed : predecessors(schedule, action)) {
        EXPECT_LE(by_action.at(needed).end, entry.start)
            << to_string(action) << " started before " << to_string(needed) << " ended";
      }
    }
  }
  EXPECT_EQ(entries.size(), count);
}

}  // namespace stratagem::schedules
