// The placement of activations between layers that ranks share.
#pragma once

#include <cstdint>

namespace stratagem::tensor_parallel {

/// The activations between layers that share a matrix (docs/reference/strategies.md).
enum class Layout {
  tensor,    // every rank has all of them: all-reduces
  sequence,  // every rank has its part of the positions: reduce-scatters and all-gathers
};

/// The dimension of positions in an activation [samples, positions, features].
inline constexpr std::int64_t sequence_dimension = 1;

}  // namespace stratagem::tensor_parallel
