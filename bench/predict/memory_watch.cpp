#include "bench/predict/memory_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stratagem::bench {
namespace {

MemoryMark mark_of(const runtime::Device& device, const schedules::Action& action) {
  const runtime::MemoryStatistics memory = device.memory();
  return {.action = action, .held = by_purpose(memory), .peak = memory.peak_bytes};
}

}  // namespace

BytesByPurpose by_purpose(const runtime::MemoryStatistics& memory) {
  BytesByPurpose bytes;
  if (!memory.by_category) {
    bytes[name(runtime::MemoryCategory::other)] = memory.current_bytes;
    return bytes;
  }
  for (std::size_t index = 0; index < runtime::memory_categories; ++index) {
    const auto category = static_cast<runtime::MemoryCategory>(index);
    const std::int64_t held = memory.by_category->current[category];
    if (held != 0) bytes[name(category)] = held;
  }
  return bytes;
}

void add(BytesByPurpose& bytes, const BytesByPurpose& change) {
  for (const auto& [purpose, more] : change) bytes[purpose] += more;
  std::erase_if(bytes, [](const auto& entry) { return entry.second == 0; });
}

BytesByPurpose difference(const BytesByPurpose& after, const BytesByPurpose& before) {
  BytesByPurpose change;
  for (const auto& [purpose, held] : before) change[purpose] = -held;
  add(change, after);
  return change;
}

std::int64_t sum(const BytesByPurpose& bytes) {
  std::int64_t all = 0;
  for (const auto& [purpose, held] : bytes) all += held;
  return all;
}

reports::MemoryCurve curve_of(int rank, int device, const std::vector<MemoryAt>& moments) {
  reports::MemoryCurve curve{
      .rank = rank, .device = device, .ms = {}, .bytes = {}, .most_bytes = {}};
  for (const MemoryAt& moment : moments) {
    for (const auto& [purpose, bytes] : moment.held) curve.bytes[purpose];
  }
  const BytesByPurpose* before = nullptr;
  for (const MemoryAt& moment : moments) {
    if (before != nullptr && *before == moment.held && &moment != &moments.back()) {
      curve.most_bytes.back() = std::max(curve.most_bytes.back(), moment.most_bytes);
      continue;
    }
    before = &moment.held;
    curve.ms.push_back(std::round(1e3 * moment.ms) / 1e3);
    curve.most_bytes.push_back(moment.most_bytes);
    for (auto& [purpose, bytes] : curve.bytes) {
      const auto held = moment.held.find(purpose);
      bytes.push_back(held == moment.held.end() ? 0 : held->second);
    }
  }
  return curve;
}

void MemoryWatch::begin(runtime::DeviceSpan devices, const schedules::Execution& like) {
  devices_ = devices;
  device_of_.clear();
  for (const schedules::ExecutedAction& entry : like) {
    device_of_[entry.action] = static_cast<std::size_t>(entry.device);
  }
  marks_.assign(devices.size(), {});
  for (const auto& device : devices_) device->reset_peak_memory();
  watches_ = true;
}

void MemoryWatch::before(const schedules::Action& action) {
  if (!watches_) return;
  const auto found = device_of_.find(action);
  if (found == device_of_.end()) return;
  runtime::Device& device = *devices_[found->second];
  marks_[found->second].push_back(mark_of(device, action));
  device.reset_peak_memory();
}

std::vector<std::vector<MemoryMark>> MemoryWatch::end() {
  watches_ = false;
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    marks_[device].push_back(mark_of(*devices_[device], {}));
  }
  return std::exchange(marks_, {});
}

}  // namespace stratagem::bench
