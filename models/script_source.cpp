#include "models/script_source.h"

#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace stratagem::models {
namespace {

using torch::jit::Module;
using Inputs = c10::ArrayRef<const c10::IValue>;

/// Returns whether the code of the module, with that of all it calls, has a rectified unit.
bool has_relu(const Module& module) {
  const auto graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  const std::string code = graph->toString();
  constexpr std::array rectifiers = {"aten::relu", "aten::leaky_relu", "aten::hardtanh",
                                     "aten::threshold"};
  return std::ranges::any_of(
      rectifiers, [&](const char* name) { return code.find(name) != std::string::npos; });
}

/// The counter of this thread: RecordFunction takes a plain function, which reaches nothing else.
thread_local LayerFlops* counter = nullptr;

/// Counts a product with a parameter, which has a product for each of its two gradients.
void count_weights(double flops) { *counter += {flops, flops, flops}; }

/// Counts a product of two activations: both gradients belong to the input.
void count_activations(double flops) { *counter += {flops, 2 * flops, 0}; }

/// Returns 2 x rows x inner x columns of the matrices `left` and `right`.
double product(const c10::IValue& left, const c10::IValue& right) {
  return 2 * static_cast<double>(left.toTensor().numel()) *
         static_cast<double>(right.toTensor().size(-1));
}

/// Returns 2 x weights x positions x samples. The kernel of a transposed convolution visits the
/// positions of the input, another one those of the output.
double convolution(Inputs inputs) {
  const at::Tensor& input = inputs[0].toTensor();
  const at::Tensor& weight = inputs[1].toTensor();
  const auto strides = inputs[3].toIntVector();
  const auto paddings = inputs[4].toIntVector();
  const auto dilations = inputs[5].toIntVector();
  const bool transposed = inputs[6].toBool();
  double flops = 2 * static_cast<double>(weight.numel()) * static_cast<double>(input.size(0));
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const auto place = static_cast<std::int64_t>(axis) + 2;
    const std::int64_t kernel = dilations[axis] * (weight.size(place) - 1) + 1;
    const std::int64_t output =
        (input.size(place) + 2 * paddings[axis] - kernel) / strides[axis] + 1;
    flops *= static_cast<double>(transposed ? input.size(place) : output);
  }
  return flops;
}

/// Returns the operations of scores and mixture of [..., positions, features of a head].
double attention(Inputs inputs) {
  const at::Tensor& query = inputs[0].toTensor();
  const at::Tensor& value = inputs[2].toTensor();
  const auto queries = static_cast<double>(query.numel());
  const auto keys = static_cast<double>(value.size(-2));
  return 2 * queries * keys *
         (1 + static_cast<double>(value.size(-1)) / static_cast<double>(query.size(-1)));
}

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
  if (counter == nullptr) return nullptr;
  const std::string_view name = function.name();
  const Inputs inputs = function.inputs();
  if (name == "aten::mm") count_weights(product(inputs[0], inputs[1]));
  if (name == "aten::addmm") count_weights(product(inputs[1], inputs[2]));
  if (name == "aten::convolution") count_weights(convolution(inputs));
  if (name == "aten::bmm") count_activations(product(inputs[0], inputs[1]));
  if (name == "aten::baddbmm") count_activations(product(inputs[1], inputs[2]));
  // Without this kernel attention is two aten::bmm.
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") {
    count_activations(attention(inputs));
  }
  return nullptr;
}

/// Counts the operations of this thread while it lives.
class FlopCount {
 public:
  FlopCount()
      : handle_(
            at::addThreadLocalCallback(at::RecordFunctionCallback(count).needsInputs(true).scopes(
                {at::RecordScope::FUNCTION}))) {
    counter = &flops_;
  }
  ~FlopCount() {
    at::removeCallback(handle_);
    counter = nullptr;
  }
  FlopCount(const FlopCount&) = delete;
  FlopCount& operator=(const FlopCount&) = delete;

  const LayerFlops& flops() const { return flops_; }

 private:
  LayerFlops flops_;
  at::CallbackHandle handle_;
};

}  // namespace

std::string reason_of(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  const std::string_view text = own != nullptr ? own->what_without_backtrace() : error.what();
  // TorchScript's own errors end with what was thrown inside it.
  constexpr std::string_view inner = "RuntimeError: ";
  const auto found = text.rfind(inner);
  const std::string_view from = found == std::string_view::npos ? text : text.substr(found);
  return std::string(from.substr(0, from.find('\n')));
}

at::Tensor call(const Module& module, const at::Tensor& input) {
  // Without the optimizing executor a function runs, and is differentiated, as eager code.
  const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
  Module callee = module;  // a handle: operator() is not const
  const c10::IValue output = callee({input});
  if (!output.isTensor()) throw std::invalid_argument("the output is not a tensor");
  return output.toTensor();
}

ScriptSource::ScriptSource(std::string name, Module module, at::ScalarType input)
    : name_(std::move(name)),
      module_(std::move(module)),
      input_(input),
      rectifies_(has_relu(module_)) {}

ScriptSource::Sizes ScriptSource::sizes(Shape sample) const {
  sample.at(0) = 1;
  const std::scoped_lock lock(mutex_);
  if (const auto found = known_.find(sample); found != known_.end()) return found->second;
  const c10::AutoGradMode no_gradient(false);
  const FlopCount count;
  const at::Tensor output = call(module_, at::zeros(sample, input_));
  if (output.dim() == 0 || output.size(0) != 1) {
    throw std::invalid_argument("the first dimension of the output is not the batch");
  }
  return known_.emplace(sample, Sizes{output.sizes().vec(), count.flops()}).first->second;
}

}  // namespace stratagem::models
