// A convolution's weight in the layouts that oneDNN's or our kernels read, kept while the weight is
// unchanged: for all micro-batches of a step.
//
// ATen gives oneDNN the weight unpacked, and oneDNN reorders it in every call, forward and
// backward, at a cost that does not depend on the batch (docs/explanation/cpu_performance.md).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>

namespace stratagem::models {

struct ConvolutionStride;

/// Works on the CPU; the calls for one convolution come from one thread at a time. If oneDNN has no
/// kernel for a weight, a copy in the weight's own layout is kept, so that a check in float64
/// notices a weight that was kept too long, which float32 would use.
class PackedWeights : public torch::CustomClassHolder {
 public:
  /// `model_width` is the factor of the model's hidden widths.
  explicit PackedWeights(double model_width = 1.0) : model_width_(model_width) {}

  /// Returns the weight's size in the model of full width. It chooses the path, so that a check on
  /// a narrow model runs the full model's code.
  std::int64_t full_size(const at::Tensor& weight) const;

  /// Returns whether the kept weight is in oneDNN's layout and not a copy.
  static bool is_packed(const at::Tensor& weight);

  /// Returns the weight [o, c, k, k] for convolutions of [n, c, h, w].
  const at::Tensor& for_forward(const at::Tensor& weight, at::IntArrayRef input,
                                const ConvolutionStride& options);
  /// Returns the weight for the transposed convolution of gradients [n, o, h', w'] that gives the
  /// input's gradient. `output_padding` is the remainder of the forward pass's stride.
  const at::Tensor& for_backward(const at::Tensor& weight, at::IntArrayRef gradient,
                                 at::IntArrayRef output_padding, const ConvolutionStride& options);
  /// Returns the weight for Winograd's convolutions; calls `transform` unless the result for the
  /// current weight is kept.
  const at::Tensor& transformed(const at::Tensor& weight, bool backwards,
                                c10::function_ref<at::Tensor()> transform);

 private:
  struct Packed {
    at::Tensor tensor;
    const void* data = nullptr;  // the weight's address
    std::uint32_t version = 0;   // autograd's, which every write in place increments

    const at::Tensor& of(const at::Tensor& weight, c10::function_ref<at::Tensor()> pack);
  };

  double model_width_;
  Packed forward_;
  Packed backward_;
  Packed transformed_;
  Packed transformed_backwards_;
};

using PackedWeightsPointer = c10::intrusive_ptr<PackedWeights>;

}  // namespace stratagem::models
