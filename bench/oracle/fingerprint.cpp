#include "bench/oracle/fingerprint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/proof/signed_sums.h"
#include "strategies/distributed/state_pieces.h"

namespace stratagem::bench {
namespace {

using strategies::StatePiece;

/// Iterates over the places of a slice's elements in the whole entry, in row-major order of the
/// slice. It has a dimension.
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

  std::int64_t place() const { return place_; }

  /// Returns the number of the next elements, at most `most`, that are contiguous, and moves past
  /// them.
  std::int64_t take_run(std::int64_t most) {
    const std::int64_t rest = sizes_.back() - position_.back();
    const std::int64_t run = strides_.back() == 1 ? std::min(most, rest) : 1;
    std::int64_t step = run;
    for (std::size_t dimension = sizes_.size(); dimension-- > 0; step = 1) {
      place_ += step * strides_[dimension];
      position_[dimension] += step;
      if (position_[dimension] < sizes_[dimension]) break;
      place_ -= sizes_[dimension] * strides_[dimension];
      position_[dimension] = 0;
    }
    return run;
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> position_;
  std::int64_t place_;
};

/// Adds the elements, whose places begin at `first`, in blocks that a cache holds.
void add_blocks(const at::Tensor& values, std::int64_t first, SignedSums& sums) {
  constexpr std::int64_t block = std::int64_t{1} << 15;
  const at::Tensor exact = at::empty({std::min(block, values.numel())}, at::kDouble);
  const std::span all(exact.const_data_ptr<double>(), static_cast<std::size_t>(exact.numel()));
  for (std::int64_t start = 0; start < values.numel(); start += block) {
    const std::int64_t count = std::min(block, values.numel() - start);
    exact.narrow(0, 0, count).copy_(values.narrow(0, start, count));
    sums.add(all.first(static_cast<std::size_t>(count)), first + start);
  }
}

Fingerprint fingerprint_of(const StatePiece& piece) {
  SignedSums sums(piece.name);
  const at::Tensor values = piece.values.detach().to(at::kCPU).contiguous().flatten();
  if (piece.slice.is_contiguous()) {
    add_blocks(values, piece.slice.storage_offset() + piece.start, sums);
  } else if (values.numel() > 0) {
    const at::Tensor exact = values.to(at::kDouble);
    std::span left(exact.const_data_ptr<double>(), static_cast<std::size_t>(exact.numel()));
    Places places(piece.slice, piece.start);
    while (!left.empty()) {
      const std::int64_t place = places.place();
      const auto run = static_cast<std::size_t>(places.take_run(std::ssize(left)));
      sums.add(left.first(run), place);
      left = left.subspan(run);
    }
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
