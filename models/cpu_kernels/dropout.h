// Dropout (Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
// Overfitting") whose masks do not depend on the strategy: the bits of an element are a function of
// the seed, the layer, the number of the batch, the sample's place in it, the position and the
// feature. So no rank keeps or exchanges the state of a generator, and a backward pass or a
// recomputation makes the same mask again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace stratagem::models {

/// The place of a forward pass in the training.
struct SamplePlace {
  std::uint64_t seed = 0;
  std::int64_t batch = 0;                        // its number
  std::int64_t first_row = 0;                    // in the global batch
  std::int64_t first_position = 0;               // in the sequence
  std::span<const std::int64_t> positions = {};  // if set, first_position counts in these
  std::int64_t rows = 0;                         // of the global batch, if it was dealt
  std::int64_t dealt_to = 1;                     // see Batch::dealt_to

  /// Returns the sample of a row of the global batch, as one device numbers them.
  std::int64_t sample_of(std::int64_t row) const;
  std::int64_t position_of(std::int64_t column) const {
    const std::int64_t place = first_position + column;
    return positions.empty() ? place : positions[static_cast<std::size_t>(place)];
  }
};

/// Sets the place of forward passes on this thread until the end of the scope.
class SamplePlaceGuard {
 public:
  explicit SamplePlaceGuard(const SamplePlace& place);
  ~SamplePlaceGuard();
  SamplePlaceGuard(const SamplePlaceGuard&) = delete;
  SamplePlaceGuard& operator=(const SamplePlaceGuard&) = delete;

 private:
  const SamplePlace* previous_;
  SamplePlace place_;
};

/// Sets elements of x, [n, positions, features], to zero with probability `rate`, in [0, 1), and
/// divides the others by 1 - rate. `site` names the place in the model. Throws std::logic_error
/// without a SamplePlaceGuard.
at::Tensor placed_dropout(const at::Tensor& x, double rate, std::string_view site);

}  // namespace stratagem::models
