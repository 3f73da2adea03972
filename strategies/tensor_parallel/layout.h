// How activations lie between layers that ranks share.
#pragma once

#include <cstdint>

namespace stratagem::tensor_parallel {

/// Between the layers that share a matrix (docs/reference/strategies.md).
enum class Layout {
  tensor,    // every rank has all of them: all-reduces
  sequence,  // every rank has its part of the positions: reduce-scatters and all-gathers
};

/// Of an activation [samples, positions, features].
inline constexpr std::int64_t sequence_dimension = 1;

}  // namespace stratagem::tensor_parallel
