#include "strategies/stages/own_stages.h"

#include <ATen/ATen.h>

#include <utility>

#include "strategies/stages/stage_state.h"

namespace stratagem::stages {

OwnStages::OwnStages(std::vector<int> device_of_stage, int first_device,
                     runtime::DeviceSpan devices)
    : device_of_stage_(std::move(device_of_stage)),
      first_device_(first_device),
      devices_(devices),
      stages_(device_of_stage_.size()),
      groups_(device_of_stage_.size()) {
  const int end = first_device + static_cast<int>(devices.size());
  for (int stage = 0; stage < count(); ++stage) {
    const int device = device_of_stage_[static_cast<std::size_t>(stage)];
    if (device >= first_device && device < end) own_.push_back(stage);
  }
}

std::size_t OwnStages::device_of(int stage) const {
  return static_cast<std::size_t>(device_of_stage_.at(static_cast<std::size_t>(stage)) -
                                  first_device_);
}

bool OwnStages::on_one_device(int stage, int other) const {
  return device_of(stage) == device_of(other);
}

void OwnStages::add(int index, std::unique_ptr<Stage> stage) {
  stages_.at(static_cast<std::size_t>(index)) = std::move(stage);
}

void OwnStages::add_group(int index, std::unique_ptr<FlatGroup> group) {
  groups_.at(static_cast<std::size_t>(index)) = std::move(group);
}

strategies::StateBytes OwnStages::state_bytes(int index, std::int64_t micro_batches) const {
  const FlatGroup* flat = group(index);
  return flat == nullptr ? at(index).state_bytes() : flat->state_bytes(micro_batches);
}

at::Tensor OwnStages::squared_gradient_norm(int index) const {
  const FlatGroup* flat = group(index);
  return flat == nullptr ? at(index).squared_gradient_norm() : flat->squared_gradient_norm();
}

std::string OwnStages::not_finite(int index) const {
  if (const FlatGroup* flat = group(index)) return flat->not_finite();
  for (const auto& [name, tensor] : models::parameters(at(index).layers())) {
    const at::Tensor& gradient = tensor.grad();
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return name;
  }
  return {};
}

std::vector<at::Tensor> OwnStages::gradients_of(int index,
                                                const std::vector<at::Tensor>& parameters) const {
  if (const FlatGroup* flat = group(index)) return flat->gradients_of(parameters);
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  return gradients;
}

void OwnStages::add_state(strategies::StateDictionary& all) const {
  for (const int index : own_) {
    if (const FlatGroup* flat = group(index)) {
      flat->add_state(all);
    } else {
      stages::add_state(at(index), all);
    }
  }
}

void OwnStages::add_pieces(bool first_replica, bool with_gradients,
                           strategies::StatePieces& all) const {
  for (const int index : own_) {
    if (const FlatGroup* flat = group(index)) {
      flat->add_pieces(first_replica, with_gradients, all);
    } else if (first_replica) {
      stages::add_pieces(at(index), models::buffers(at(index).layers()), with_gradients, all);
    }
  }
}

void OwnStages::load(const strategies::StateDictionary& state) const {
  for (const int index : own_) {
    if (FlatGroup* flat = group(index)) {
      flat->load(state);
    } else {
      load_state(at(index), state);
    }
  }
}

}  // namespace stratagem::stages
