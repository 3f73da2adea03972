#include "bench/proof/signed_sums.h"

#include <algorithm>

#include "models/datasets/random_bits.h"

namespace stratagem::bench {
namespace {

constexpr std::int64_t group = 8;  // elements; one number has their signs, a byte each

using Signs = std::array<double, Fingerprint::projections>;  // for one element

constexpr std::array<Signs, 256> make_table() {
  std::array<Signs, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    for (std::size_t index = 0; index < table[byte].size(); ++index) {
      table[byte][index] = ((byte >> index) & 1U) != 0 ? -1 : 1;
    }
  }
  return table;
}

constexpr std::array<Signs, 256> signs_of_byte = make_table();

/// Returns the 64-bit FNV-1a hash.
std::uint64_t seed_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char character : name) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace

SignedSums::SignedSums(const std::string& name) : seed_(seed_of(name)) {}

void SignedSums::add(std::span<const double> values, std::int64_t place) {
  Signs projected = projected_;  // in registers
  double squares = squares_;
  for (std::size_t done = 0; done < values.size();) {
    const std::int64_t within = place % group;
    std::uint64_t bytes = signs_of_group(place / group) >> static_cast<unsigned>(8 * within);
    const std::size_t end =
        std::min(values.size(), done + static_cast<std::size_t>(group - within));
    place += static_cast<std::int64_t>(end - done);
    for (; done < end; ++done, bytes >>= 8U) {
      const double value = values[done];
      const Signs& signs = signs_of_byte[bytes & 255U];
      squares += value * value;
      for (std::size_t index = 0; index < projected.size(); ++index) {
        projected[index] += signs[index] * value;
      }
    }
  }
  projected_ = projected;
  squares_ = squares;
}

Fingerprint SignedSums::fingerprint() const {
  return {.squares = squares_, .projected = {projected_.begin(), projected_.end()}};
}

std::uint64_t SignedSums::signs_of_group(std::int64_t number) const {
  return datasets::scrambled(seed_ + static_cast<std::uint64_t>(number) * datasets::scramble_step);
}

}  // namespace stratagem::bench
