// Adds up the sums of a fingerprint (bench/proof/evidence.h) piece by piece.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "bench/proof/evidence.h"

namespace stratagem::bench {

/// Adds up the elements of one entry. Their signs follow from its name and their places in it.
class SignedSums {
 public:
  explicit SignedSums(const std::string& name);

  /// Adds consecutive elements, the first of them at `place` of the entry.
  void add(std::span<const double> values, std::int64_t place);

  Fingerprint fingerprint() const;

 private:
  std::uint64_t signs_of_group(std::int64_t number) const;

  std::uint64_t seed_;
  double squares_ = 0;
  std::array<double, Fingerprint::projections> projected_ = {};
};

}  // namespace stratagem::bench
