// What a layer exchanges with the ranks that hold its other parts, by formula.
#pragma once

#include <cstdint>
#include <string>

#include "strategies/costs.h"

namespace stratagem::tensor_parallel {

/// How activations lie between the layers that share a matrix (docs/strategies.md).
enum class Layout {
  tensor,    // every rank has all of them: all-reduces
  sequence,  // every rank has its part of the positions: reduce-scatters and all-gathers
};

/// Of an activation [samples, positions, features].
inline constexpr std::int64_t sequence_dimension = 1;

using Communication = strategies::CommunicationCounts;

/// Adds a call of `collective` with `bytes` of payload.
inline void add_call(Communication& communication, const std::string& collective,
                     std::int64_t bytes) {
  communication[collective].calls += 1;
  communication[collective].payload_bytes += bytes;
}

/// One micro-batch that a layer works on.
struct LayerInput {
  std::int64_t positions = 0;  // samples x sequence length, of all ranks
  std::int64_t element_bytes = 0;
  bool input_needs_gradient = true;
};

/// Of `bytes` of outputs that are sums over the ranks: an all-reduce, or with Layout::sequence a
/// reduce-scatter, and an all-gather in the backward pass.
inline Communication sum_communication(std::int64_t bytes, Layout layout, int ranks) {
  Communication calls;
  if (layout == Layout::tensor) {
    add_call(calls, "all_reduce", bytes);
  } else {
    add_call(calls, "reduce_scatter", bytes);
    add_call(calls, "all_gather", bytes / ranks);
  }
  return calls;
}

class ParallelLayer {
 public:
  virtual ~ParallelLayer() = default;
  /// Of one forward and one backward pass, by rank.
  virtual Communication communication(const LayerInput& work) const = 0;
};

}  // namespace stratagem::tensor_parallel
