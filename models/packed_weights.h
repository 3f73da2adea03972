// A convolution's weight in the layouts that oneDNN's kernels read, kept while the weight stays as
// it is: for all micro-batches of a step.
//
// ATen hands oneDNN the weight as it lies, and oneDNN reorders it in every call, forward and
// backward, at a cost that does not depend on the batch: on a Zen 4 core 2 ms for 512 to 512
// channels of 3x3, as much as 4 samples of it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>

namespace stratagem::models {

struct ConvolutionStride;

// float32, on the CPU; the calls for one convolution come from one thread at a time.
class PackedWeights : public torch::CustomClassHolder {
 public:
  // The weight [o, c, k, k] for convolutions of [n, c, h, w].
  const at::Tensor& for_forward(const at::Tensor& weight, at::IntArrayRef input,
                                const ConvolutionStride& options);
  // For the transposed convolution of gradients [n, o, h', w'] that gives the input's gradient.
  // `output_padding` is what the forward pass's stride left over.
  const at::Tensor& for_backward(const at::Tensor& weight, at::IntArrayRef gradient,
                                 at::IntArrayRef output_padding, const ConvolutionStride& options);

 private:
  struct Packed {
    at::Tensor tensor;
    const void* data = nullptr;  // of the weight
    std::uint32_t version = 0;   // autograd's, which every write in place increments

    bool is_of(const at::Tensor& weight) const;
    void keep(const at::Tensor& weight, at::Tensor packed);
  };

  Packed forward_;
  Packed backward_;
};

using PackedWeightsPointer = c10::intrusive_ptr<PackedWeights>;

}  // namespace stratagem::models
