#include "bench/oracle/master_parameters.h"

#include <ATen/ATen.h>

namespace stratagem::bench {

MasterParameters::MasterParameters(at::ScalarType dtype, const models::Model& model)
    : of_model_(models::parameters(model.layers)) {
  for (auto& [name, tensor] : of_model_) {
    masters_.push_back({name, tensor.detach().clone().set_requires_grad(true)});
    tensor.set_data(tensor.detach().to(dtype));
  }
}

void MasterParameters::begin_step() {
  const at::NoGradGuard no_gradient;
  for (std::size_t index = 0; index < masters_.size(); ++index) {
    const at::Tensor& master = masters_[index].tensor;
    of_model_[index].tensor.detach().copy_(master.detach());
    at::Tensor(master).mutable_grad() = at::zeros_like(master.detach());
  }
}

void MasterParameters::add_gradients() {
  const at::NoGradGuard no_gradient;
  for (std::size_t index = 0; index < masters_.size(); ++index) {
    at::Tensor& gradient = of_model_[index].tensor.mutable_grad();
    masters_[index].tensor.mutable_grad().add_(gradient);
    gradient.reset();
  }
}

}  // namespace stratagem::bench
