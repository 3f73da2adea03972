#include "strategies/sharding/sharded_strategy.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

#include "strategies/distributed/tensor_broadcast.h"
#include "strategies/sharding/layer_groups.h"

namespace stratagem::sharding {
namespace {

using schedules::Action;
using schedules::ActionKind;
using schedules::Sharded;

}  // namespace

/// What the base needs before the strategy has members.
struct ShardedStrategy::Making {
  Making(strategies::StrategyContext of, stages::Planner of_step, tensor_parallel::Layout of_layers)
      : context(std::move(of)), planner(std::move(of_step)), layout(of_layers) {
    const Sharded sharded = schedules::sharded_by(context.options.shard);
    const strategies::RankGroups& ranks = context.groups;
    if (sharded != Sharded::nothing && ranks.data.empty()) {
      throw std::logic_error("sharding needs a process group for each device");
    }
    if (sharded == Sharded::nothing) {
      context.groups.copies = ranks.data;
    } else if (ranks.copies.empty() != (context.options.replicas_of_shards == 1)) {
      throw std::logic_error("copies of shards need a process group for each device");
    }
    const models::Model model = context.workload.make_meta_model();
    const LayerGroups groups = groups_of(
        model.layers, {.options = context.options, .arrangement = {.replicas = ranks.replicas}},
        context.workload.options().width);
    flat->resize(groups.boundaries.size() + 1);
    stages.boundaries = groups.boundaries;
    const FlatOptions options{
        .format = context.workload.options().dtype,
        .sums = {.sharded = sharded,
                 .mixed = context.workload.options().mixed,
                 .in_master = strategies::reduces_in_float32(context.options),
                 .partial = ranks.tensor != nullptr && layout == tensor_parallel::Layout::sequence},
        .reduce_scatter = distributed::reduce_scatter_of(context.options.reduce_scatter),
        .compressed = context.options.compression == "fp16"};
    stages.finish = [flat = flat, shards = ranks.shards.empty() ? ranks.data : ranks.shards,
                     copies = ranks.copies, options](int index, int device, stages::Stage& made) {
      FlatOptions own = options;
      if (own.sums.is_sharded()) own.ranks = shards[static_cast<std::size_t>(device)];
      if (!copies.empty()) own.copies = copies[static_cast<std::size_t>(device)];
      (*flat)[static_cast<std::size_t>(index)] = std::make_unique<FlatGroup>(made, own);
    };
  }

  strategies::StrategyContext context;
  stages::Planner planner;
  tensor_parallel::Layout layout;
  stages::StageMaking stages;
  std::shared_ptr<FlatGroups> flat = std::make_shared<FlatGroups>();
};

ShardedStrategy::ShardedStrategy(const strategies::StrategyContext& context,
                                 const stages::Planner& planner, tensor_parallel::Layout layout)
    : ShardedStrategy(Making(context, planner, layout)) {}

ShardedStrategy::ShardedStrategy(const Making& making)
    : stages::StagedStrategy(making.context, making.planner, making.layout, making.stages),
      flat_(making.flat) {
  if (making.context.groups.data.empty()) return;
  std::vector<std::vector<at::Tensor>> by_device(making.context.devices.size());
  for (const int index : own_stages()) {
    auto& all = by_device[static_cast<std::size_t>(own_device_of(index))];
    for (const auto& [name, tensor] : models::buffers(stage(index).layers())) all.push_back(tensor);
  }
  for (const auto& tensors : by_device) buffers_.push_back(distributed::by_type(tensors));
}

ShardedStrategy::~ShardedStrategy() { come_to_rest(); }

strategies::Costs ShardedStrategy::costs(std::int64_t samples) const {
  strategies::Costs costs = stages::StagedStrategy::costs(samples);
  costs.memory.assign(costs.memory.size(), {});
  const stages::StepPlan plan = planned(samples);
  const int micro_batches = plan.schedule.micro_batches;
  for (const int index : own_stages()) {
    costs.memory[static_cast<std::size_t>(own_device_of(index))] +=
        (*flat_)[static_cast<std::size_t>(index)]->state_bytes(micro_batches);
  }
  for (const auto& actions : plan.schedule.actions) {
    for (const Action& action : actions) {
      const FlatGroup* own = (*flat_)[static_cast<std::size_t>(action.stage)].get();
      if (own == nullptr) continue;
      if (action.kind == ActionKind::unshard) costs.collectives["all_gather"] += own->gather_cost();
      if (action.kind == ActionKind::reduce_scatter) {
        costs.collectives["reduce_scatter"] += own->scatter_cost(micro_batches);
      }
      if (action.kind == ActionKind::all_reduce_start) {
        costs.collectives["all_reduce"] += own->all_reduce_cost();
      }
    }
  }
  for (std::size_t device = 0; device < buffers_.size(); ++device) {
    if (!buffers_[device].empty()) costs.collectives["broadcast"] += broadcast_cost(device);
  }
  return costs;
}

strategies::CollectiveCount ShardedStrategy::broadcast_cost(std::size_t device) const {
  strategies::CollectiveCount cost;
  for (const std::vector<at::Tensor>& tensors : buffers_.at(device)) {
    cost.calls += 1;
    for (const at::Tensor& each : tensors) {
      cost.payload_bytes += static_cast<std::int64_t>(each.nbytes());
    }
  }
  return cost;
}

strategies::CollectiveCount ShardedStrategy::payload_of(const Action& action,
                                                        const schedules::Schedule& schedule) const {
  switch (action.kind) {
    case ActionKind::unshard:
      return group(action.stage).gather_cost();
    case ActionKind::reduce_scatter:
      return group(action.stage).scatter_cost(schedule.micro_batches);
    case ActionKind::all_reduce_start:
      return group(action.stage).all_reduce_cost();
    default:
      return schedules::is_of_replicas(action.kind)
                 ? broadcast_cost(static_cast<std::size_t>(own_device_of(action.stage)))
                 : stages::StagedStrategy::payload_of(action, schedule);
  }
}

void ShardedStrategy::perform(const Action& action, stages::StepInProgress& step) {
  const ActionKind kind = action.kind;
  const int micro_batches = step.plan.plan.schedule.micro_batches;
  FlatGroup& own = group(action.stage);
  switch (kind) {
    case ActionKind::unshard:
      return own.unshard();
    case ActionKind::unshard_wait:
      return keep(action, own.wait_for_parameters(), step);
    case ActionKind::reshard:
      return own.reshard();
    case ActionKind::reduce_scatter:
      return own.reduce_scatter(micro_batches);
    case ActionKind::gradient_wait:
      return keep(action, own.wait_for_gradients(), step);
    case ActionKind::all_reduce_start:
      return own.all_reduce();
    case ActionKind::all_reduce_wait:
      return keep(action, own.wait_for_sum(), step);
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
      own.before_backward();
      break;
    default:
      break;
  }
  stages::StagedStrategy::perform(action, step);
  if (schedules::makes_weight_gradients(kind)) own.after_backward(micro_batches);
  if (kind == ActionKind::optimizer) own.publish();
}

/// What a wait waited for becomes part of the step's execution.
void ShardedStrategy::keep(const Action& wait, const distributed::TransferPointer& ended,
                           stages::StepInProgress& step) {
  const std::lock_guard lock(step.mutex);
  step.concurrent.push_back({.device = own_device_of(wait.stage),
                             .action = schedules::awaited_transfer(wait).value(),
                             .start = ended->start(),
                             .end = ended->end()});
}

/// Of all groups on the stage's device.
void ShardedStrategy::broadcast_buffers(int stage) {
  const auto device = static_cast<std::size_t>(own_device_of(stage));
  for (const auto& tensors : buffers_[device]) {
    distributed::broadcast_from_root(tensors, *groups().data[device]);
  }
}

std::vector<at::Tensor> ShardedStrategy::gradients_of(int stage,
                                                      const std::vector<at::Tensor>& parameters) {
  return group(stage).gradients_of(parameters);
}

at::Tensor ShardedStrategy::squared_gradient_norm_of(int index) {
  return group(index).squared_gradient_norm();
}

std::string ShardedStrategy::not_finite_in(int index) { return group(index).not_finite(); }

void ShardedStrategy::add_state_of(int index, strategies::StateDictionary& all) {
  group(index).add_state(all);
}

void ShardedStrategy::add_pieces_of(int index, bool with_gradients, strategies::StatePieces& all) {
  group(index).add_pieces(groups().replica == 0, with_gradients, all);
}

void ShardedStrategy::load_state_of(int index, const strategies::StateDictionary& state) {
  group(index).load(state);
}

}  // namespace stratagem::sharding
