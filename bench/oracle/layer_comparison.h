// Compares each layer of a model on a row's own kernels with the reference kernels on the same
// inputs. So later layers do not magnify a rounding, and the bound follows only from the format and
// the layer; in a deep network's whole step that growth may hide a wrong lane.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "bench/oracle/layer_units.h"
#include "bench/oracle/rounding.h"
#include "models/workload.h"

namespace stratagem::bench {

/// The arithmetic of a row.
struct OwnArithmetic {
  at::ScalarType dtype = at::kFloat;
  at::MemoryFormat format = at::MemoryFormat::ChannelsLast;
  at::Device device = at::kCPU;
  double roundoff = unit_roundoff(at::kFloat);
  at::ScalarType reference = at::kFloat;  // format of the CPU kernels compared with
  bool split_backward = false;  // weight gradients come later (deferred_weight_gradients.h)
  /// Calls a function on the row's device and returns when it has returned.
  std::function<void(const std::function<void()>&)> on_device = [](const auto& work) { work(); };

  /// Returns whether the CPU's kernels of half formats sum in float32 and round their results, so
  /// that sums do not magnify roundings.
  bool sums_in_float32() const { return reference == dtype && at::isReducedFloatingType(dtype); }
};

/// A layer with the samples of its two micro-batches.
struct SizedLayer {
  const LayerUnit& unit;
  std::array<std::int64_t, 2> samples;
  at::Tensor data;  // as many samples or more, for the model's first layer only
};

/// Runs a layer forward and backward on two micro-batches. Between them its parameters are updated
/// in place while their gradients stay, so that a kernel that packs weights must pack anew and one
/// that adds to a sum has one. Every output, gradient and buffer may differ by the bound from the
/// reference kernels in the row's format, and by twice the bound from those in float64; the latter
/// in the shapes of `exact`, which may be smaller. Leaves other values in the layer.
Differences compare_layer(const SizedLayer& full, const SizedLayer& exact,
                          const OwnArithmetic& own);

}  // namespace stratagem::bench
