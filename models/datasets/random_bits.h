// Random bits as a function of their purpose: equal on every machine and in every order.
#pragma once

#include <cstdint>

namespace stratagem::datasets {

/// The finaliser of splitmix64 (Steele, Lea and Flood 2014). Neighbouring numbers give unrelated
/// bits.
inline std::uint64_t scrambled(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}
/// The increment of splitmix64's state before each number.
inline constexpr std::uint64_t scramble_step = 0x9e3779b97f4a7c15U;

/// The splitmix64 generator.
class RandomBits {
 public:
  /// Seeds the generator for sample `number` of a set with this seed.
  RandomBits(std::uint64_t seed, std::uint64_t number)
      : state_(RandomBits(RandomBits(seed).next() + number).next()) {}

  std::uint64_t next() { return scrambled(state_ += scramble_step); }

  /// Returns a number in [0, 1) of 24 bits.
  float uniform() { return static_cast<float>(next() >> 40U) * 0x1p-24F; }
  float between(float low, float high) { return low + (high - low) * uniform(); }
  /// Returns a number below `limit`, which must be small compared with 2^64.
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
  }

 private:
  explicit RandomBits(std::uint64_t state) : state_(state) {}

  std::uint64_t state_;
};

}  // namespace stratagem::datasets
