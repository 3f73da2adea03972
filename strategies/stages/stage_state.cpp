#include "strategies/stages/stage_state.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <stdexcept>

#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/state_pieces.h"

namespace stratagem::stages {
namespace {

void copy_in(const strategies::StateDictionary& state, const models::NamedTensor& target) {
  const auto found = state.find(target.name);
  if (found == state.end()) {
    throw std::invalid_argument(fmt::format("the state has no entry \"{}\"", target.name));
  }
  if (found->second.sizes() != target.tensor.sizes()) {
    throw std::invalid_argument(fmt::format("the state's \"{}\" has another shape", target.name));
  }
  target.tensor.detach().copy_(found->second);
}

}  // namespace

void add_state(Stage& stage, strategies::StateDictionary& all) {
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    all[name] = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true);
  };
  for (const auto& parameter : models::parameters(stage.layers())) {
    add(parameter.name, parameter.tensor);
    if (parameter.tensor.grad().defined()) {
      add("gradient." + parameter.name, parameter.tensor.grad());
    }
  }
  for (const auto& buffer : models::buffers(stage.layers())) add(buffer.name, buffer.tensor);
  for (const auto& entry : stage.optimizer().state()) add(entry.name, entry.tensor);
}

void add_pieces(Stage& stage, const std::vector<models::NamedTensor>& buffers, bool with_gradients,
                strategies::StatePieces& all) {
  for (const auto& tensors :
       {models::parameters(stage.layers()), buffers, stage.optimizer().state()}) {
    for (const auto& [name, tensor] : tensors) all.push_back(distributed::piece_of(name, tensor));
  }
  for (const auto& [name, tensor] : models::parameters(stage.layers())) {
    if (!with_gradients || !tensor.grad().defined()) continue;
    all.push_back(distributed::piece_of("gradient." + name, tensor.grad()));
  }
}

void load_state(Stage& stage, const strategies::StateDictionary& state) {
  const c10::AutoGradMode no_gradient(false);
  // The optimizer's state belongs to the device, whichever thread calls.
  const backends::MemoryAccountGuard charged(backends::account_of(stage.device()));
  const auto parameters = models::parameters(stage.layers());
  for (const auto& parameter : parameters) copy_in(state, parameter);
  for (const auto& buffer : models::buffers(stage.layers())) copy_in(state, buffer);
  stage.optimizer().load(state);
  for (const auto& entry : stage.optimizer().state()) {
    backends::retag(entry.tensor, backends::MemoryCategory::optimizer);
  }
  // The copies are on this thread's stream, for which the device's streams do not wait.
  if (!parameters.empty()) backends::finish(parameters.front().tensor);
}

}  // namespace stratagem::stages
