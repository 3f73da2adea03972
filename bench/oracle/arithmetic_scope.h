// Shrinks a row for the second verdict, as little as its time allows. Micro-batches keep their
// sizes as long as dropping some is enough, and layers their widths: both decide which kernel is
// chosen. The limit is in floating-point operations, so a row has one scope on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "bench/config/placement.h"
#include "bench/config/verification_scope.h"

namespace stratagem::bench {

struct StepSize {
  double flops = 0;
  std::int64_t parameters = 0;
};

/// Shrinks until a step is no larger than `affordable`, or nothing is left to shrink: in turn
/// micro-batches, to two of a replica, then image or sequence, then samples of a micro-batch; the
/// width if there are too many parameters. The learning rate is one whose update shows.
VerificationScope shrink_step(
    const Config& row, const ScopeTraits& traits, std::int64_t replicas,
    strategies::MicroBatchOption counted, StepSize affordable,
    const std::function<StepSize(const Config& config, double width)>& size_of);

/// The sizes of a model's inputs: two micro-batches, the row's first and last.
struct LayerScope {
  std::array<std::int64_t, 2> samples = {1, 1};
  std::int64_t image_size = 0;
  std::int64_t sequence_length = 0;

  bool operator==(const LayerScope&) const = default;
};

/// Shrinks the samples, but not below where a convolution would be computed otherwise, then image
/// or sequence, then the samples again.
LayerScope shrink_layers(const LayerScope& full, const ScopeTraits& traits, double affordable_flops,
                         const std::function<double(const LayerScope&)>& flops_of);

/// Returns "micro-batch 12 -> 4, image 128 -> 64", or "full size".
std::string difference(const LayerScope& full, const LayerScope& shrunk);

}  // namespace stratagem::bench
