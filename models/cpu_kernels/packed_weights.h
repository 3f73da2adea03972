// A convolution's weight in the layouts that kernels read, oneDNN's or ours, kept while the weight
// stays as it is: for all micro-batches of a step.
//
// ATen hands oneDNN the weight as it lies, and oneDNN reorders it in every call, forward and
// backward, at a cost that does not depend on the batch (docs/explanation/cpu_performance.md).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>

namespace stratagem::models {

struct ConvolutionStride;

/// On the CPU; the calls for one convolution come from one thread at a time. What oneDNN has no
/// kernels for is kept as a copy in the layout that it has: a check in float64 then notices a
/// weight that was kept for too long, as float32 would use it.
class PackedWeights : public torch::CustomClassHolder {
 public:
  /// Of a model whose hidden widths are multiplied by `model_width`.
  explicit PackedWeights(double model_width = 1.0) : model_width_(model_width) {}

  /// How many weights this one has in the model of full width: by them a path is chosen, so that a
  /// check on a narrow model runs what the full one runs.
  std::int64_t full_size(const at::Tensor& weight) const;

  /// Whether what is kept of this weight is in oneDNN's layout and not a copy.
  static bool is_packed(const at::Tensor& weight);

  /// The weight [o, c, k, k] for convolutions of [n, c, h, w].
  const at::Tensor& for_forward(const at::Tensor& weight, at::IntArrayRef input,
                                const ConvolutionStride& options);
  /// For the transposed convolution of gradients [n, o, h', w'] that gives the input's gradient.
  /// `output_padding` is what the forward pass's stride left over.
  const at::Tensor& for_backward(const at::Tensor& weight, at::IntArrayRef gradient,
                                 at::IntArrayRef output_padding, const ConvolutionStride& options);
  /// What Winograd's convolutions read: `transform` is called where none is kept of the weight as
  /// it is.
  const at::Tensor& transformed(const at::Tensor& weight, bool backwards,
                                c10::function_ref<at::Tensor()> transform);

 private:
  struct Packed {
    at::Tensor tensor;
    const void* data = nullptr;  // of the weight
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
