#include "models/layer.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stratagem::models {
namespace {

at::Tensor converted(const at::Tensor& tensor, const at::Device& device, at::ScalarType dtype,
                     at::MemoryFormat format) {
  const at::ScalarType kind = tensor.is_floating_point() ? dtype : tensor.scalar_type();
  const at::Tensor moved = tensor.detach().to(device, kind);
  if (tensor.dim() != 4 || format != at::MemoryFormat::ChannelsLast) return moved.contiguous();
  // A 1x1 kernel is contiguous in both formats. It gets the strides that its gradient will have: a
  // gradient of other strides would be copied wherever gradients are kept in buckets.
  const at::Tensor result = moved.contiguous(format);
  const std::int64_t channels = result.size(1);
  const std::int64_t row = channels * result.size(3);
  return result.as_strided(result.sizes(), {row * result.size(2), 1, row, channels});
}

}  // namespace

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

LayerFlops& LayerFlops::operator+=(const LayerFlops& other) {
  forward += other.forward;
  backward_input += other.backward_input;
  backward_weight += other.backward_weight;
  return *this;
}

LayerFlops Layer::flops(const Shape& input) const {
  output_shape(input);
  return {};
}

void Layer::to(const at::Device& device, at::ScalarType dtype, at::MemoryFormat format) {
  const at::NoGradGuard no_grad;
  for (NamedTensor& parameter : parameters_) {
    parameter.tensor.mutable_grad().reset();
    parameter.tensor.set_data(converted(parameter.tensor, device, dtype, format));
  }
  for (NamedTensor& buffer : buffers_) {
    buffer.tensor.set_data(converted(buffer.tensor, device, dtype, format));
  }
}

at::Tensor Layer::register_parameter(std::string_view suffix, at::Tensor tensor) {
  tensor.set_requires_grad(true);
  parameters_.push_back({name_ + "." + std::string(suffix), tensor});
  return tensor;
}

at::Tensor Layer::register_buffer(std::string_view suffix, at::Tensor tensor) {
  buffers_.push_back({name_ + "." + std::string(suffix), tensor});
  return tensor;
}

void Layer::adopt(const Layer& part) {
  parameters_.insert(parameters_.end(), part.parameters().begin(), part.parameters().end());
  buffers_.insert(buffers_.end(), part.buffers().begin(), part.buffers().end());
}

}  // namespace stratagem::models
