// What memory of a device is for. docs/explanation/timing.md says what belongs where.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stratagem::runtime {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer,      // what it accumulates for the parameters
  activations,    // what a forward or a backward pass makes
  communication,  // what is received, gathered, or made to be sent
  staging,        // copies of inputs, of targets, and of what goes from device to device
  other,
};

inline constexpr std::array<const char*, 7> memory_category_names = {
    "parameters", "gradients", "optimizer", "activations", "communication", "staging", "other"};
inline constexpr std::size_t memory_categories = memory_category_names.size();

constexpr const char* name(MemoryCategory category) {
  return memory_category_names.at(static_cast<std::size_t>(category));
}

/// One number for each category [bytes].
class BytesByCategory {
 public:
  std::int64_t& operator[](MemoryCategory category) {
    return bytes_[static_cast<std::size_t>(category)];
  }
  std::int64_t operator[](MemoryCategory category) const {
    return bytes_[static_cast<std::size_t>(category)];
  }
  std::int64_t sum() const {
    std::int64_t all = 0;
    for (const std::int64_t bytes : bytes_) all += bytes;
    return all;
  }
  bool operator==(const BytesByCategory&) const = default;

 private:
  std::array<std::int64_t, memory_categories> bytes_{};
};

/// An account's memory by what it is for [bytes].
struct CategorizedMemory {
  BytesByCategory current;
  BytesByCategory peak;     // of each category for itself
  BytesByCategory at_peak;  // when all together were at their highest: the first time
};

}  // namespace stratagem::runtime
