#include "bench/oracle/fingerprint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "models/datasets/random_bits.h"
#include "strategies/distributed/state_pieces.h"

namespace stratagem::bench {
namespace {

using strategies::StatePiece;

/// 64-bit FNV-1a.
std::uint64_t seed_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char character : name) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3U;
  }
  return hash;
}

/// A sign in each bit.
std::uint64_t signs_of(std::uint64_t seed, std::int64_t place) {
  return datasets::scrambled(seed + static_cast<std::uint64_t>(place) * datasets::scramble_step);
}

class Sums {
 public:
  explicit Sums(std::uint64_t seed) : seed_(seed) {}

  void add(double value, std::int64_t place) {
    const std::uint64_t signs = signs_of(seed_, place);
    squares_ += value * value;
    for (std::size_t index = 0; index < projected_.size(); ++index) {
      const std::uint64_t sign = (signs << (63 - index)) & (std::uint64_t{1} << 63U);
      projected_[index] += std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ sign);
    }
  }

  Fingerprint fingerprint() const {
    return {.squares = squares_, .projected = {projected_.begin(), projected_.end()}};
  }

 private:
  std::uint64_t seed_;
  double squares_ = 0;
  std::array<double, Fingerprint::projections> projected_ = {};
};

/// The places of a slice's elements in the whole entry, in row-major order of the slice.
class Places {
 public:
  Places(const at::Tensor& slice, std::int64_t start)
      : sizes_(slice.sizes().vec()),
        strides_(slice.strides().vec()),
        position_(sizes_.size()),
        place_(slice.storage_offset()) {
    for (std::size_t dimension = sizes_.size(); dimension-- > 0;) {
      position_[dimension] = start % sizes_[dimension];
      place_ += position_[dimension] * strides_[dimension];
      start /= sizes_[dimension];
    }
  }

  std::int64_t next() {
    const std::int64_t place = place_;
    for (std::size_t dimension = sizes_.size(); dimension-- > 0;) {
      place_ += strides_[dimension];
      if (++position_[dimension] < sizes_[dimension]) break;
      place_ -= sizes_[dimension] * strides_[dimension];
      position_[dimension] = 0;
    }
    return place;
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> position_;
  std::int64_t place_;
};

Fingerprint fingerprint_of(const StatePiece& piece) {
  Sums sums(seed_of(piece.name));
  const at::Tensor values = piece.values.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* value = values.const_data_ptr<double>();
  const std::int64_t count = values.numel();
  if (piece.slice.is_contiguous()) {
    const std::int64_t first = piece.slice.storage_offset() + piece.start;
    for (std::int64_t index = 0; index < count; ++index) sums.add(value[index], first + index);
  } else if (count > 0) {
    Places places(piece.slice, piece.start);
    for (std::int64_t index = 0; index < count; ++index) sums.add(value[index], places.next());
  }
  return sums.fingerprint();
}

}  // namespace

Fingerprints fingerprints_of(const strategies::StatePieces& pieces) {
  Fingerprints all;
  for (const StatePiece& piece : pieces) all[piece.name].add(fingerprint_of(piece));
  return all;
}

Fingerprints fingerprints_of(const strategies::StateDictionary& state) {
  strategies::StatePieces pieces;
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with("gradient.")) pieces.push_back(distributed::piece_of(name, tensor));
  }
  return fingerprints_of(pieces);
}

}  // namespace stratagem::bench
