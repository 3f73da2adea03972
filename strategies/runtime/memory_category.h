// The purposes of a device's memory; see docs/explanation/timing.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stratagem::runtime {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer,      // the state accumulated for the parameters
  activations,    // results of a forward or a backward pass
  communication,  // received, gathered, or made to be sent
  staging,        // copies of inputs, of targets, and between devices
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

/// An account's memory by purpose [bytes].
struct CategorizedMemory {
  BytesByCategory current;
  BytesByCategory peak;     // each category's own peak
  BytesByCategory at_peak;  // the composition of the first highest total
};

}  // namespace stratagem::runtime
