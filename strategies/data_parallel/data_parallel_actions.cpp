// The actions of DataParallelStrategy, each on its device's thread.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"
#include "strategies/data_parallel/data_parallel_strategy.h"

namespace stratagem::data_parallel {

using backends::MemoryCategory;
using backends::MemoryCategoryGuard;
using schedules::Action;
using schedules::ActionKind;

void DataParallelStrategy::perform(const Action& action, Work& work) {
  const Place place = place_of(action);
  switch (action.kind) {
    case ActionKind::copy_input:
      return load_inputs(action, work);
    case ActionKind::scatter:
      return load_chunk(place.replica, work.inputs, work.targets, work);
    case ActionKind::replicate:
      return replicate(place);
    case ActionKind::gather:
      return gather(work);
    case ActionKind::forward:
      return is_loss(action, work) ? forward_loss(work) : forward(action, work);
    case ActionKind::backward:
      return is_loss(action, work) ? backward_loss(work) : backward(place, work);
    case ActionKind::recompute:
      return recompute(place, work);
    case ActionKind::scatter_gradient:
      return scatter_gradient(place.replica, work);
    case ActionKind::sum_gradients:
      return sum_gradients(place, work.plan.shape.replicas);
    case ActionKind::gradient_norm:
      work.squared_norms.at(static_cast<std::size_t>(action.stage)) =
          stage_at(place.replica, place.segment).squared_gradient_norm();
      return;
    case ActionKind::optimizer:
      return update(place, work);
    default:
      throw std::logic_error(to_string(action) + " is no action of data_parallel");
  }
}

at::Tensor DataParallelStrategy::brought(std::size_t slot, const Work& work,
                                         const std::function<at::Tensor()>& bring) {
  if (!keep_inputs_ || work.evaluates) return bring();
  at::Tensor& kept = kept_.at(slot);
  if (!kept.defined()) kept = bring();
  return kept;
}

/// Loads the targets, the whole batch, or a replica's part of it.
void DataParallelStrategy::load_inputs(const Action& action, Work& work) {
  if (is_loss(action, work)) {
    work.targets = brought(slot_of_targets(0), work, [&] {
      return backends::copy_to(work.batch.targets, device_of(loss_device(work)));
    });
    return;
  }
  if (action.stage > 0 || !scatter_from_first_) {
    const int replica = place_of(action).replica;
    return load_chunk(replica, work.batch.inputs, work.batch.targets, work);
  }
  const schedules::Slice& own = work.plan.step.partition.front();
  work.inputs =
      brought(0, work, [&] { return backends::copy_to(work.batch.inputs, device_of(0)); });
  stage_at(0, 0).set_input(0, work.inputs.narrow(0, own.start, own.count));
  if (!loss_on_replicas_) return;
  work.targets = brought(slot_of_targets(0), work,
                         [&] { return backends::copy_to(work.batch.targets, device_of(0)); });
  stage_at(0, segments() - 1).set_targets(0, work.targets.narrow(0, own.start, own.count));
}

void DataParallelStrategy::load_chunk(int replica, const at::Tensor& inputs,
                                      const at::Tensor& targets, const Work& work) {
  const schedules::Slice& own = work.plan.step.partition.at(static_cast<std::size_t>(replica));
  const auto part_of = [&](const at::Tensor& whole) {
    const at::Tensor chunk = whole.narrow(0, own.start, own.count);
    if (scatter_from_first_) count("scatter", {chunk});
    return backends::copy_to(chunk, device_of(replica));
  };
  stage_at(replica, 0).set_input(0, brought(static_cast<std::size_t>(replica), work, [&] {
                                   return part_of(inputs);
                                 }));
  if (!loss_on_replicas_) return;
  stage_at(replica, segments() - 1).set_targets(0, brought(slot_of_targets(replica), work, [&] {
                                                  return part_of(targets);
                                                }));
}

/// Copies the parameters of the device that updates them, and the first device's buffers.
void DataParallelStrategy::replicate(Place to) {
  const c10::AutoGradMode no_gradient(false);
  std::vector<at::Tensor> moved;
  const auto copy_all = [&](const auto& from, const auto& target) {
    for (std::size_t index = 0; index < from.size(); ++index) {
      target[index].tensor.detach().copy_(from[index].tensor.detach(), /*non_blocking=*/true);
      moved.push_back(from[index].tensor);
    }
  };
  const models::LayerList& own = stage_at(to.replica, to.segment).layers();
  if (const int owner = owner_of(to.segment); to.replica != owner) {
    copy_all(models::parameters(stage_at(owner, to.segment).layers()), models::parameters(own));
  }
  if (to.replica > 0) {
    copy_all(models::buffers(stage_at(0, to.segment).layers()), models::buffers(own));
  }
  if (!moved.empty()) count("replicate", moved);
}

void DataParallelStrategy::gather(Work& work) {
  const MemoryCategoryGuard staging(MemoryCategory::staging);
  std::vector<at::Tensor> parts;
  for (int replica = 0; replica < work.plan.shape.replicas; ++replica) {
    const at::Tensor& output = stage_at(replica, segments() - 1).output(0);
    if (replica == output_device_) {
      backends::mark_used(output);
      parts.push_back(output.detach());
    } else {
      count("gather", {output});
      parts.push_back(backends::copy_to(output, device_of(output_device_)));
    }
  }
  work.outputs = at::cat(parts);
}

void DataParallelStrategy::forward(const Action& action, Work& work) {
  const Place place = place_of(action);
  stages::Stage& own = stage_at(place.replica, place.segment);
  if (place.segment > 0) {
    own.set_input(0, stage_at(place.replica, place.segment - 1).output(0).detach());
  }
  const models::SamplePlaceGuard of_samples(samples_of(place, work));
  own.forward(0, weight(place, work), /*keeps=*/!work.plan.recomputed.contains(action));
  const auto replica = static_cast<std::size_t>(place.replica);
  if (!work.evaluates || !loss_on_replicas_ || place.segment + 1 < segments()) return;
  work.losses[replica] = own.take_loss(0);
  work.correct[replica] = own.take_correct(0);
}

void DataParallelStrategy::recompute(Place place, const Work& work) {
  const models::SamplePlaceGuard of_samples(samples_of(place, work));
  stage_at(place.replica, place.segment).recompute(0, weight(place, work));
}

models::SamplePlace DataParallelStrategy::samples_of(Place place, const Work& work) const {
  const auto replica = static_cast<std::size_t>(place.replica);
  return workload_.place_of(work.batch, work.plan.step.partition.at(replica).start);
}

/// Returns the share of the replica's loss in the batch's; the loss of gathered outputs is whole.
double DataParallelStrategy::weight(Place place, const Work& work) const {
  if (!loss_on_replicas_) return 1;
  const auto replica = static_cast<std::size_t>(place.replica);
  return work.plan.step.partition.at(replica).weight(work.batch.size());
}

void DataParallelStrategy::forward_loss(Work& work) {
  const MemoryCategoryGuard activations(MemoryCategory::activations);
  if (work.plan.shape.replicas == 1) {
    work.outputs = stage_at(0, segments() - 1).output(0).detach();
  }
  backends::mark_used(work.outputs);
  backends::mark_used(work.targets);
  work.outputs.requires_grad_(!work.evaluates);
  work.losses[0] = workload_.loss(work.outputs, work.targets, /*weight=*/1);
  if (work.evaluates) work.correct[0] = workload_.correct(work.outputs, work.targets);
}

void DataParallelStrategy::backward_loss(Work& work) {
  const MemoryCategoryGuard activations(MemoryCategory::activations);
  work.losses[0].backward();
  work.losses[0] = work.losses[0].detach();
  if (work.plan.shape.replicas > 1) return;
  stage_at(0, segments() - 1).set_output_gradient(0, work.outputs.grad());
}

void DataParallelStrategy::backward(Place place, Work& work) {
  stages::Stage& own = stage_at(place.replica, place.segment);
  own.backward(0);
  if (place.segment > 0) {
    stage_at(place.replica, place.segment - 1).set_output_gradient(0, own.take_input_gradient(0));
  }
  if (loss_on_replicas_ && place.segment + 1 == segments()) {
    work.losses[static_cast<std::size_t>(place.replica)] = own.take_loss(0);
  }
}

void DataParallelStrategy::scatter_gradient(int replica, const Work& work) {
  const schedules::Slice& own = work.plan.step.partition.at(static_cast<std::size_t>(replica));
  const at::Tensor part = work.outputs.grad().narrow(0, own.start, own.count);
  stages::Stage& last = stage_at(replica, segments() - 1);
  if (replica == output_device_) return last.set_output_gradient(0, part);
  count("scatter_gradient", {part});
  last.receive_gradient(0, part);
}

/// Sums the owner's own gradients first, then the others' in the order of the devices.
void DataParallelStrategy::sum_gradients(Place owner, int replicas) {
  const c10::AutoGradMode no_gradient(false);
  const auto sums = models::parameters(stage_at(owner.replica, owner.segment).layers());
  bool has_own = owner.replica < replicas;
  for (int replica = 0; replica < replicas; ++replica) {
    if (replica == owner.replica) continue;
    stages::Stage& other = stage_at(replica, owner.segment);
    const auto parts = models::parameters(other.layers());
    std::vector<at::Tensor> moved;
    for (std::size_t index = 0; index < sums.size(); ++index) {
      const at::Tensor& gradient = parts[index].tensor.grad();
      at::Tensor& sum = sums[index].tensor.mutable_grad();
      if (!has_own) sum.reset();  // frees the last step's before the new one is made
      const at::Tensor copy = backends::copy_to(gradient, device_of(owner.replica));
      if (has_own) {
        backends::mark_used(sum);
        sum.add_(copy);
      } else {
        sum = copy;
        backends::retag(sum, MemoryCategory::gradients);
      }
      moved.push_back(gradient);
    }
    has_own = true;
    count("sum_gradients", moved);
    other.drop_gradients();
  }
}

void DataParallelStrategy::update(Place owner, Work& work) {
  stages::Stage& own = stage_at(owner.replica, owner.segment);
  own.optimizer().set_learning_rate(work.learning_rate);
  if (!clips()) return own.update();
  const double squared_norm = work.norm_on_host->read(
      [&] { return stages::sum_on(device_of(owner.replica), work.squared_norms); });
  if (owner.segment == 0) work.gradient_norm = std::sqrt(squared_norm);
  own.update(squared_norm);
}

void DataParallelStrategy::count(const char* collective, const std::vector<at::Tensor>& tensors) {
  const std::lock_guard lock(mutex_);
  strategies::CollectiveCount& own = counts_[collective];
  own.calls += 1;
  for (const at::Tensor& tensor : tensors) {
    own.payload_bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
}

}  // namespace stratagem::data_parallel
