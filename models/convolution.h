// Two-dimensional convolution without bias, and the one place that knows which memory format and
// kernel it runs best on.
//
// torch 2.11 sends a 1x1 convolution of stride 1 over fewer than 16 samples on one thread to a
// native kernel (one small matrix product of MKL a sample) instead of oneDNN, forward and backward.
// The choice looks at the batch size only, so the fold moves image rows into the batch: a 1x1
// convolution does not mix positions, and on a channels_last tensor the fold is a view. What it
// gains is the distance between oneDNN and MKL on the processor: 1.05 to 1.13 measured on a Zen 4
// core, about 2 where oneDNN has full-width AVX-512 and MKL does not use it. It loses where a call
// has few positions, and nothing is folded there. Reduced precision goes to oneDNN anyway; float64
// has no oneDNN kernel, but folds too, so that a check in float64 runs the code that float32 runs.
// bench/bench_convolution_fold.cpp tells for which shapes it pays and when a later version makes it
// superfluous.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stratagem::models {

// Cross-correlation of x [n, c, h, w] with weight [o, c, k, k], zero padding on every side.
// Returns [n, o, (h + 2 padding - k) / stride + 1, (w + 2 padding - k) / stride + 1], channels_last
// where x is.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                       std::int64_t padding);

// Whether convolution() takes the fold for these arguments on this thread.
bool takes_fold(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                std::int64_t padding);

// The same for weight [o, c, 1, 1], stride 1 and no padding, by way of the fold: free of copies
// where x is channels_last.
at::Tensor folded_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight);

struct ConvolutionPolicy {
  bool fold_pointwise = true;
};

// What convolution() does on this thread.
ConvolutionPolicy convolution_policy();

// Switches the fold on or off for this thread until the end of the scope; the oracle runs without.
class PointwiseFoldGuard {
 public:
  explicit PointwiseFoldGuard(bool fold_pointwise);
  ~PointwiseFoldGuard();
  PointwiseFoldGuard(const PointwiseFoldGuard&) = delete;
  PointwiseFoldGuard& operator=(const PointwiseFoldGuard&) = delete;

 private:
  ConvolutionPolicy previous_;
};

}  // namespace stratagem::models
