// Watches what each device holds during one step, action by action.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/record.h"
#include "strategies/runtime/device.h"
#include "strategies/schedules/executor.h"

namespace stratagem::bench {

/// Bytes by purpose (runtime::memory_category_names); a purpose without bytes is missing. A device
/// that does not know the purposes has them under "other".
using BytesByPurpose = std::map<std::string, std::int64_t>;

BytesByPurpose by_purpose(const runtime::MemoryStatistics& memory);
/// Adds `change`, which may be negative.
void add(BytesByPurpose& bytes, const BytesByPurpose& change);
BytesByPurpose difference(const BytesByPurpose& after, const BytesByPurpose& before);
std::int64_t sum(const BytesByPurpose& bytes);

/// A device's memory before an action.
struct MemoryMark {
  schedules::Action action;
  BytesByPurpose held = {};
  std::int64_t peak = 0;  // since the action before
};

/// A device's memory from a moment of a step on.
struct MemoryAt {
  double ms = 0;  // from the start of the step
  BytesByPurpose held = {};
  std::int64_t most_bytes = 0;  // the most until the next moment
};

/// Returns a device's curve, with times in whole microseconds. It leaves out moments that change
/// nothing, except the last.
reports::MemoryCurve curve_of(int rank, int device, const std::vector<MemoryAt>& moments);

/// Takes a mark before each action of a step. It restarts the devices' peaks meanwhile.
class MemoryWatch {
 public:
  /// Begins between two steps. `like` is an execution of the same actions; the devices must outlive
  /// the watch.
  void begin(runtime::DeviceSpan devices, const schedules::Execution& like);

  /// Must be called before each action, on its device's thread. Does nothing before begin().
  void before(const schedules::Action& action);

  /// Ends after the step. Returns the marks of each device in the order of its actions, the last
  /// one at the end of the step. [device]
  std::vector<std::vector<MemoryMark>> end();

 private:
  std::atomic<bool> watches_ = false;
  runtime::DeviceSpan devices_ = {};
  std::map<schedules::Action, std::size_t> device_of_;
  std::vector<std::vector<MemoryMark>> marks_;  // [device]
};

}  // namespace stratagem::bench
