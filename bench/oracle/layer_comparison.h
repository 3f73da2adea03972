// The layers of a model on a row's own kernels, each against the reference kernels on the same
// inputs. So a rounding is not magnified by the layers behind it, and the bound follows from the
// format and the layer alone; in a deep network's whole step a wrong lane may hide behind that.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "bench/oracle/layer_units.h"
#include "bench/oracle/rounding.h"
#include "models/workload.h"

namespace stratagem::bench {

/// How a row computes.
struct OwnArithmetic {
  at::ScalarType dtype = at::kFloat;
  at::MemoryFormat format = at::MemoryFormat::ChannelsLast;
  at::Device device = at::kCPU;
  double roundoff = unit_roundoff(at::kFloat);
  at::ScalarType reference = at::kFloat;  // of the kernels on the CPU that it is compared with
  bool split_backward = false;  // weight gradients come later (deferred_weight_gradients.h)
  /// Calls a function on the row's device and returns when it has returned.
  std::function<void(const std::function<void()>&)> on_device = [](const auto& work) { work(); };

  /// The CPU's kernels of half formats sum in float32 and round what they give, so that sums do not
  /// magnify roundings.
  bool sums_in_float32() const { return reference == dtype && at::isReducedFloatingType(dtype); }
};

/// A layer with the samples of the two micro-batches that it is given.
struct SizedLayer {
  const LayerUnit& unit;
  std::array<std::int64_t, 2> samples;
  at::Tensor data;  // as many samples or more, of the model's first layer alone
};

/// Runs a layer forward and backward on two micro-batches, between which its parameters are updated
/// in place while their gradients stay, so that a kernel that packs weights must pack anew and one
/// that adds to a sum has one. Every output, gradient and buffer may be off by the bound from the
/// reference kernels in the row's format, and by twice the bound from those in float64; the latter
/// in the shapes of `exact`, which may be smaller. Leaves other values in the layer.
Differences compare_layer(const SizedLayer& full, const SizedLayer& exact,
                          const OwnArithmetic& own);

}  // namespace stratagem::bench
