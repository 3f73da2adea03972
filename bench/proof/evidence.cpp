#include "bench/proof/evidence.h"

#include <algorithm>
#include <cmath>

namespace stratagem::bench {

double Fingerprint::norm() const { return std::sqrt(squares); }

void Fingerprint::add(const Fingerprint& part) {
  squares += part.squares;
  for (std::size_t index = 0; index < projections; ++index) {
    projected.at(index) += part.projected.at(index);
  }
}

double distance(const Fingerprint& one, const Fingerprint& other) {
  double squares = 0;
  for (std::size_t index = 0; index < Fingerprint::projections; ++index) {
    const double difference = one.projected.at(index) - other.projected.at(index);
    squares += difference * difference;
  }
  return std::sqrt(squares / static_cast<double>(Fingerprint::projections));
}

const Fingerprints* Trajectory::after(std::int64_t steps) const {
  const auto found = std::ranges::find(states, steps, &StateAt::steps);
  return found == states.end() ? nullptr : &found->state;
}

}  // namespace stratagem::bench
