#include "models/layer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stratagem::models {
namespace {

at::Tensor converted(const at::Tensor& tensor, const at::Device& device, at::ScalarType dtype,
                     at::MemoryFormat format) {
  const at::ScalarType kind = tensor.is_floating_point() ? dtype : tensor.scalar_type();
  const at::Device target = tensor.is_meta() ? at::Device(at::kMeta) : device;
  const at::Tensor moved = tensor.detach().to(target, kind);
  if (tensor.dim() != 4 || format != at::MemoryFormat::ChannelsLast) return moved.contiguous();
  // A 1x1 kernel is contiguous in both formats. It gets its gradient's strides: gradient buckets
  // would copy a gradient of other strides.
  const at::Tensor result = moved.contiguous(format);
  const std::int64_t channels = result.size(1);
  const std::int64_t row = channels * result.size(3);
  return result.as_strided(result.sizes(), {row * result.size(2), 1, row, channels});
}

}  // namespace

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

LayerFlops& LayerFlops::operator+=(const LayerFlops& part) {
  forward += part.forward;
  backward_input += part.backward_input;
  backward_weight += part.backward_weight;
  remade += part.remade;
  return *this;
}

LayerFlops Layer::flops(const Shape& input) const {
  output_shape(input);
  return {};
}

void Layer::materialise(std::uint64_t seed, const at::Device& device, at::ScalarType dtype,
                        at::MemoryFormat format) {
  const at::NoGradGuard no_grad;
  for (const auto& [of, initial] : std::exchange(unfilled_, {})) {
    if (!of.tensor.is_meta()) continue;  // the layer that adopted this one has filled it
    at::Tensor values = draw(initial, of.tensor.sizes(), seed, of.name);
    if (!of.tensor.is_floating_point()) values = values.to(of.tensor.scalar_type());
    values = converted(values, device, dtype, format);
    // This is set_data() without its check that both are on one kind of device.
    of.tensor.unsafeGetTensorImpl()->shallow_copy_from(values.getIntrusivePtr());
  }
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

NamedTensor Layer::without_memory(std::string_view suffix, const Shape& sizes,
                                  const InitialValues& initial, at::ScalarType dtype) {
  const auto options = at::TensorOptions(at::kMeta).dtype(dtype);
  NamedTensor made{name_ + "." + std::string(suffix), at::empty(sizes, options)};
  unfilled_.push_back({made, initial});
  return made;
}

at::Tensor Layer::register_parameter(std::string_view suffix, const Shape& sizes,
                                     const InitialValues& initial) {
  return register_parameter(suffix, without_memory(suffix, sizes, initial, at::kFloat).tensor);
}

at::Tensor Layer::register_parameter(std::string_view suffix, at::Tensor tensor) {
  tensor.set_requires_grad(true);
  parameters_.push_back({name_ + "." + std::string(suffix), tensor});
  return tensor;
}

at::Tensor Layer::register_buffer(std::string_view suffix, const Shape& sizes,
                                  const InitialValues& initial, at::ScalarType dtype) {
  buffers_.push_back(without_memory(suffix, sizes, initial, dtype));
  return buffers_.back().tensor;
}

void Layer::adopt(const Layer& part) {
  parameters_.insert(parameters_.end(), part.parameters().begin(), part.parameters().end());
  buffers_.insert(buffers_.end(), part.buffers().begin(), part.buffers().end());
  unfilled_.insert(unfilled_.end(), part.unfilled_.begin(), part.unfilled_.end());
}

}  // namespace stratagem::models
