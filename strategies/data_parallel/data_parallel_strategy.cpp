#include "strategies/data_parallel/data_parallel_strategy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/data_parallel/data_parallel_schedule.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/lowering.h"
#include "strategies/stages/stage_state.h"

namespace stratagem::data_parallel {
namespace {

using schedules::Action;
using schedules::ActionKind;

/// Every replica has all layers, and none of them the loss.
constexpr stages::Stage::Position whole_model{.first = true, .last = false};

std::vector<at::Tensor> parameters_and_buffers(const stages::Stage& stage) {
  std::vector<at::Tensor> all;
  for (const auto& parameter : models::parameters(stage.layers())) all.push_back(parameter.tensor);
  for (const auto& buffer : models::buffers(stage.layers())) all.push_back(buffer.tensor);
  return all;
}

std::int64_t total_bytes(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace

void check_output_device(const strategies::StrategyOptions& options, int devices) {
  if (options.output_device < devices) return;
  throw std::invalid_argument(fmt::format("--output-device {}: the row has {} devices; 0 to {}",
                                          options.output_device, devices, devices - 1));
}

class DataParallelStrategy::Step final : public strategies::PendingStep {
 public:
  Step(schedules::Execution execution, std::shared_ptr<const Work> work)
      : execution_(std::move(execution)), work_(std::move(work)) {}

  const schedules::Execution& execution() const override { return execution_; }
  double loss() const override { return work_->loss.item<double>(); }
  double gradient_norm() const override { return work_->gradient_norm; }

 private:
  schedules::Execution execution_;
  std::shared_ptr<const Work> work_;
};

DataParallelStrategy::DataParallelStrategy(const strategies::StrategyContext& context)
    : workload_(context.workload),
      devices_(context.devices),
      timeout_(context.timeout),
      before_action_(context.before_action),
      output_device_(static_cast<int>(context.options.output_device)),
      scatter_from_first_(context.options.scatter == "first"),
      keep_inputs_(context.options.inputs == "device"),
      learning_rate_(workload_.options().optimizer.learning_rate),
      replicas_(devices_.size()),
      kept_(devices_.size() + 1) {
  check_output_device(context.options, static_cast<int>(devices_.size()));
  const models::Model model = workload_.make_model();
  const models::Shape input = workload_.input_shape(1);
  flops_of_a_sample_ =
      models::flops(model.layers, input, /*first_input_needs_gradient=*/false).total();
  output_shape_ = models::output_shape(model.layers, input);
  for (std::size_t index = 0; index < devices_.size(); ++index) {
    devices_[index]->enqueue(runtime::Stream::compute, "set-up", [this, index] {
      replicas_[index] = std::make_unique<stages::Stage>(
          workload_, workload_.make_model().layers, whole_model, devices_[index]->description(),
          /*micro_batches=*/1);
    });
  }
  synchronize();
}

DataParallelStrategy::~DataParallelStrategy() {
  try {
    synchronize();
  } catch (const std::exception&) {
    return;  // whoever synchronised before has been told
  }
}

void DataParallelStrategy::synchronize() {
  runtime::synchronize_all(devices_, timeout_);
  last_step_.clear();
}

const DataParallelStrategy::Plan& DataParallelStrategy::plan_of(std::int64_t samples) {
  if (keep_inputs_ && std::exchange(last_samples_, samples) != samples) {
    synchronize();
    kept_.assign(kept_.size(), {});
  }
  const auto found = plans_.find(samples);
  if (found != plans_.end()) return found->second;
  Plan plan{.chunks = batch_partition(samples), .schedule = {}, .evaluation = {}};
  plan.schedule = data_parallel_schedule({.devices = static_cast<int>(devices_.size()),
                                          .replicas = static_cast<int>(plan.chunks.size()),
                                          .output_device = output_device_,
                                          .scatter_from_first = scatter_from_first_});
  if (workload_.options().optimizer.clip_norm > 0) {
    plan.schedule = schedules::add_clipping(plan.schedule, /*across_ranks=*/false);
  }
  plan.evaluation = schedules::forward_only(plan.schedule);
  return plans_.emplace(samples, std::move(plan)).first->second;
}

std::unique_ptr<strategies::PendingStep> DataParallelStrategy::step(const models::Batch& batch) {
  const Plan& plan = plan_of(batch.size());
  auto work = std::make_shared<Work>(
      Work{.batch = batch, .chunks = plan.chunks, .learning_rate = learning_rate_});
  const auto perform_one = [this, work](const Action& action) {
    if (before_action_) before_action_(action);
    perform(action, *work);
  };
  last_step_ = schedules::execute(plan.schedule, devices_, perform_one, 0, last_step_);
  return std::make_unique<Step>(last_step_, work);
}

strategies::Evaluation DataParallelStrategy::evaluate(const models::Batch& batch) {
  const Plan& plan = plan_of(batch.size());
  synchronize();
  Work work{.batch = batch, .chunks = plan.chunks, .evaluates = true};
  for (const auto& replica : replicas_) replica->set_training(false);
  schedules::execute(plan.evaluation, devices_, [this, &work](const Action& action) {
    const c10::AutoGradMode no_gradient(false);
    perform(action, work);
  });
  synchronize();
  for (const auto& replica : replicas_) {
    replica->set_training(true);
    replica->release();
  }
  return {.loss = work.loss.item<double>(),
          .correct = work.correct.defined() ? work.correct.item<std::int64_t>() : 0};
}

void DataParallelStrategy::perform(const Action& action, Work& work) {
  switch (action.kind) {
    case ActionKind::copy_input:
      return load_inputs(action, work);
    case ActionKind::scatter:
      return load_chunk(action.stage, work.inputs, work);
    case ActionKind::replicate:
      return replicate(action.stage);
    case ActionKind::gather:
      return gather(work);
    case ActionKind::forward:
      return forward(action, work);
    case ActionKind::backward:
      return backward(action, work);
    case ActionKind::scatter_gradient:
      return scatter_gradient(action.stage, work);
    case ActionKind::sum_gradients:
      return sum_gradients(work.chunks.size());
    case ActionKind::gradient_norm:
      work.squared_norm = replica_at(action.stage).squared_gradient_norm();
      return;
    case ActionKind::optimizer:
      return update(action.stage, work);
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

/// The targets, the whole batch's inputs, or a replica's part of them.
void DataParallelStrategy::load_inputs(const Action& action, Work& work) {
  if (is_loss(action, work)) {
    work.targets = brought(replicas_.size(), work, [&] {
      return backends::copy_to(work.batch.targets, device_of(loss_device(work)));
    });
  } else if (action.stage == 0 && scatter_from_first_) {
    work.inputs =
        brought(0, work, [&] { return backends::copy_to(work.batch.inputs, device_of(0)); });
    const schedules::Slice& own = work.chunks.front();
    replica_at(0).set_input(0, work.inputs.narrow(0, own.start, own.count));
  } else {
    load_chunk(action.stage, work.batch.inputs, work);
  }
}

void DataParallelStrategy::load_chunk(int replica, const at::Tensor& from, const Work& work) {
  const schedules::Slice& own = work.chunks.at(static_cast<std::size_t>(replica));
  replica_at(replica).set_input(0, brought(static_cast<std::size_t>(replica), work, [&] {
                                  const at::Tensor chunk = from.narrow(0, own.start, own.count);
                                  if (scatter_from_first_) count("scatter", {chunk});
                                  return backends::copy_to(chunk, device_of(replica));
                                }));
}

void DataParallelStrategy::replicate(int to) {
  const c10::AutoGradMode no_gradient(false);
  const auto sources = parameters_and_buffers(replica_at(0));
  const auto targets = parameters_and_buffers(replica_at(to));
  for (std::size_t index = 0; index < sources.size(); ++index) {
    targets[index].detach().copy_(sources[index].detach(), /*non_blocking=*/true);
  }
  count("replicate", sources);
}

void DataParallelStrategy::gather(Work& work) {
  std::vector<at::Tensor> parts;
  for (std::size_t replica = 0; replica < work.chunks.size(); ++replica) {
    const at::Tensor& output = replicas_[replica]->output(0);
    if (static_cast<int>(replica) == output_device_) {
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
  if (!is_loss(action, work)) return replica_at(action.stage).forward(0, /*weight=*/1);
  if (work.chunks.size() == 1) work.outputs = replica_at(0).output(0).detach();
  backends::mark_used(work.outputs);
  backends::mark_used(work.targets);
  work.outputs.requires_grad_(!work.evaluates);
  work.loss = workload_.loss(work.outputs, work.targets, /*weight=*/1);
  if (work.evaluates) work.correct = workload_.correct(work.outputs, work.targets);
}

void DataParallelStrategy::backward(const Action& action, Work& work) {
  if (!is_loss(action, work)) return replica_at(action.stage).backward(0);
  work.loss.backward();
  work.loss = work.loss.detach();
  if (work.chunks.size() == 1) replica_at(0).set_output_gradient(0, work.outputs.grad());
}

void DataParallelStrategy::scatter_gradient(int replica, const Work& work) {
  const schedules::Slice& own = work.chunks.at(static_cast<std::size_t>(replica));
  const at::Tensor part = work.outputs.grad().narrow(0, own.start, own.count);
  if (replica == output_device_) return replica_at(replica).set_output_gradient(0, part);
  count("scatter_gradient", {part});
  replica_at(replica).receive_gradient(0, part);
}

/// In the order of the devices.
void DataParallelStrategy::sum_gradients(std::size_t replicas) {
  const c10::AutoGradMode no_gradient(false);
  const auto sums = models::parameters(replica_at(0).layers());
  for (std::size_t replica = 1; replica < replicas; ++replica) {
    const auto parts = models::parameters(replicas_[replica]->layers());
    std::vector<at::Tensor> moved;
    for (std::size_t index = 0; index < sums.size(); ++index) {
      const at::Tensor& gradient = parts[index].tensor.grad();
      backends::mark_used(sums[index].tensor.grad());
      sums[index].tensor.mutable_grad().add_(backends::copy_to(gradient, device_of(0)));
      moved.push_back(gradient);
    }
    count("sum_gradients", moved);
    replicas_[replica]->drop_gradients();
  }
}

void DataParallelStrategy::update(int replica, Work& work) {
  stages::Stage& own = replica_at(replica);
  own.optimizer().set_learning_rate(work.learning_rate);
  if (!work.squared_norm.defined()) return own.update();
  const auto squared_norm = work.squared_norm.item<double>();
  work.gradient_norm = std::sqrt(squared_norm);
  own.update(squared_norm);
}

void DataParallelStrategy::count(const char* collective, const std::vector<at::Tensor>& tensors) {
  const std::lock_guard lock(mutex_);
  strategies::CollectiveCount& own = counts_[collective];
  own.calls += 1;
  own.payload_bytes += total_bytes(tensors);
}

strategies::CommunicationCounts DataParallelStrategy::take_counts() {
  const std::lock_guard lock(mutex_);
  return std::exchange(counts_, {});
}

strategies::StateDictionary DataParallelStrategy::state() {
  synchronize();
  strategies::StateDictionary all;
  stages::add_state(replica_at(0), all);
  return all;
}

void DataParallelStrategy::load(const strategies::StateDictionary& state) {
  synchronize();
  stages::load_state(replica_at(0), state);
}

std::vector<schedules::Slice> DataParallelStrategy::batch_partition(std::int64_t samples) const {
  return schedules::chunk_batch(samples, static_cast<std::int64_t>(devices_.size()));
}

strategies::Costs DataParallelStrategy::costs(std::int64_t samples) const {
  const std::vector<schedules::Slice> chunks = batch_partition(samples);
  const auto others = static_cast<std::int64_t>(chunks.size()) - 1;
  strategies::Costs costs;
  costs.flops = flops_of_a_sample_ * static_cast<double>(samples);
  costs.stages = static_cast<int>(chunks.size()) + 1;
  if (others == 0) return costs;
  const auto element = static_cast<std::int64_t>(c10::elementSize(workload_.options().dtype));
  const auto one_sample = [](models::Shape shape) {
    shape.front() = 1;
    return c10::multiply_integers(shape);
  };
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : models::parameters(replicas_.front()->layers())) {
    gradients.push_back(parameter.tensor);
  }
  const std::int64_t output = one_sample(output_shape_) * element;
  costs.collectives["replicate"] = {
      others, others * total_bytes(parameters_and_buffers(*replicas_.front())), 0};
  costs.collectives["sum_gradients"] = {others, others * total_bytes(gradients), 0};
  for (const schedules::Slice& chunk : chunks) {
    if (chunk.replica == output_device_) continue;
    for (const char* name : {"gather", "scatter_gradient"}) {
      costs.collectives[name] += {1, chunk.count * output, 0};
    }
  }
  if (scatter_from_first_ && !keep_inputs_) {
    costs.collectives["scatter"] = {others, (samples - chunks.front().count) * bytes_of_an_input(),
                                    0};
  }
  return costs;
}

/// Tokens are indices.
std::int64_t DataParallelStrategy::bytes_of_an_input() const {
  const auto type =
      workload_.sequence_length() > 0 && workload_.entry().input_kind == models::InputKind::tokens
          ? at::kLong
          : workload_.options().dtype;
  return c10::multiply_integers(workload_.input_shape(1)) *
         static_cast<std::int64_t>(c10::elementSize(type));
}

}  // namespace stratagem::data_parallel
