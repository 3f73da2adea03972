// Kernels that are wrong in float32 alone: while one of these lives, every result that own kernels
// get from an operator of ATen or oneDNN is changed behind it. The reference kernels, and float64,
// stay right.
#pragma once

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::bench::broken {

class BrokenOperator {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Mistake = std::function<void(at::Tensor& result, const Tensors& inputs)>;

  BrokenOperator(std::string name, Mistake mistake)
      : name_(std::move(name)), mistake_(std::move(mistake)) {
    current = this;
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& call) { return current->before(call); },
            [](const at::RecordFunction& call, at::ObserverContext* context) {
              if (context != nullptr) current->after(call, static_cast<Inputs&>(*context).tensors);
            })
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  }
  ~BrokenOperator() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  BrokenOperator(const BrokenOperator&) = delete;
  BrokenOperator& operator=(const BrokenOperator&) = delete;

 private:
  struct Inputs : at::ObserverContext {
    Tensors tensors;
  };

  std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& call) const {
    if (models::uses_reference_kernels() || std::string_view(call.name()) != name_) return nullptr;
    auto inputs = std::make_unique<Inputs>();
    for (const c10::IValue& input : call.inputs()) {
      if (input.isTensor()) inputs->tensors.push_back(input.toTensor().detach());
    }
    return inputs;
  }

  void after(const at::RecordFunction& call, const Tensors& inputs) const {
    for (const c10::IValue& output : call.outputs()) {
      if (!output.isTensor() || output.toTensor().scalar_type() != at::kFloat) continue;
      const at::NoGradGuard no_gradient;
      at::Tensor result = output.toTensor().variable_data();  // with a version of its own
      mistake_(result, inputs);
    }
  }

  static inline BrokenOperator* current = nullptr;  // a callback of ATen's captures nothing
  std::string name_;
  Mistake mistake_;
  at::CallbackHandle handle_ = 0;
};

/// The last lane of the vectors' tail is not written: one column of a product, one channel.
inline void lose_the_last_lane(at::Tensor& result, const BrokenOperator::Tensors&) {
  result.select(result.dim() == 4 ? 1 : -1, -1).zero_();
}

/// Numbers have eight bits, as with a processor's bfloat16 units.
inline void round_to_bfloat16(at::Tensor& result, const BrokenOperator::Tensors&) {
  result.copy_(result.to(at::kBFloat16));
}

/// x W instead of x W^T, wherever both have the same shape.
inline void forget_to_transpose(at::Tensor& result, const BrokenOperator::Tensors& inputs) {
  if (inputs[1].size(0) == inputs[1].size(1)) result.copy_(at::mm(inputs[0], inputs[1]));
}

/// Of a convolution whose images' rows are folded into its batch, the last row of the last image is
/// not written. No other has maps of one row.
inline void lose_the_last_folded_row(at::Tensor& result, const BrokenOperator::Tensors&) {
  if (result.dim() == 4 && result.size(2) == 1 && result.size(3) > 1) {
    result.select(0, -1).zero_();
  }
}

}  // namespace stratagem::bench::broken
