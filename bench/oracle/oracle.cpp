#include "bench/oracle/oracle.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/api/include/torch/nn/utils/clip_grad.h>
#include <torch/csrc/api/include/torch/optim/adam.h>
#include <torch/csrc/api/include/torch/optim/adamw.h>
#include <torch/csrc/api/include/torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bench/oracle/master_parameters.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::bench {
namespace {

constexpr int verified_steps = 3;

using models::NamedTensor;
using strategies::StateDictionary;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const models::OptimizerOptions& options,
                                                        const std::vector<at::Tensor>& parameters) {
  using Kind = models::OptimizerOptions::Kind;
  const double rate = options.learning_rate;
  if (options.kind == Kind::sgd) {
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(rate)
                                                               .momentum(options.momentum)
                                                               .weight_decay(options.weight_decay));
  }
  if (options.kind == Kind::adam) {
    return std::make_unique<torch::optim::Adam>(
        parameters, torch::optim::AdamOptions(rate).weight_decay(options.weight_decay));
  }
  return std::make_unique<torch::optim::AdamW>(
      parameters, torch::optim::AdamWOptions(rate).weight_decay(options.weight_decay));
}

/// Returns an optimizer's state of a parameter, with the names of models::Optimizer::state().
StateDictionary optimizer_state(torch::optim::Optimizer& optimizer,
                                const models::OptimizerOptions& options,
                                const std::vector<NamedTensor>& parameters) {
  using Kind = models::OptimizerOptions::Kind;
  StateDictionary all;
  const auto add_moments = [&](const auto& state, const std::string& name) {
    all["optimizer.exp_avg." + name] = state.exp_avg();
    all["optimizer.exp_avg_sq." + name] = state.exp_avg_sq();
    all["optimizer.step." + name] =
        at::scalar_tensor(static_cast<double>(state.step()), at::kDouble);
  };
  for (const auto& [name, tensor] : parameters) {
    const auto found = optimizer.state().find(tensor.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    if (options.kind == Kind::sgd) {
      const auto& buffer =
          static_cast<torch::optim::SGDParamState&>(*found->second).momentum_buffer();
      if (buffer.defined()) all["optimizer.momentum_buffer." + name] = buffer;
    } else if (options.kind == Kind::adam) {
      add_moments(static_cast<torch::optim::AdamParamState&>(*found->second), name);
    } else {
      add_moments(static_cast<torch::optim::AdamWParamState&>(*found->second), name);
    }
  }
  return all;
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& each : named) tensors.push_back(each.tensor);
  return tensors;
}

StateDictionary state_of(const models::Model& model, const std::vector<NamedTensor>& parameters,
                         torch::optim::Optimizer& optimizer,
                         const models::OptimizerOptions& options) {
  StateDictionary state = optimizer_state(optimizer, options, parameters);
  for (const auto& [name, tensor] : parameters) {
    state[name] = tensor.detach();
    state["gradient." + name] = tensor.grad();
  }
  for (const auto& [name, tensor] : models::buffers(model.layers)) state[name] = tensor;
  return state;
}

models::WorkloadOptions contiguous(models::WorkloadOptions options) {
  options.format = at::MemoryFormat::Contiguous;
  return options;
}

models::Batch with_contiguous_inputs(const models::Batch& batch) {
  models::Batch contiguous = batch;
  contiguous.inputs = batch.inputs.contiguous();
  return contiguous;
}

at::Tensor slice_loss(const models::Workload& workload, const models::Model& model,
                      const models::Batch& batch, const schedules::Slice& slice) {
  const models::Batch part = batch.slice(slice.start, slice.count);
  const models::SamplePlaceGuard place(workload.place_of(batch, slice.start));
  const at::Tensor output = models::forward(model.layers, part.inputs);
  return workload.loss(output, part.targets, slice.weight(batch.size()));
}

/// Returns null if the model trains its own parameters.
std::unique_ptr<MasterParameters> masters_of(const models::Workload& workload,
                                             const models::Model& model) {
  if (workload.master_dtype() == workload.options().dtype) return nullptr;
  return std::make_unique<MasterParameters>(workload.options().dtype, model);
}

/// Keeps the largest error and its place.
class Comparison {
 public:
  void add(const std::string& name, double error) {
    if (std::isnan(error)) return add(name + " (not a number)", missing);
    if (!(error > worst_)) return;
    worst_ = error;
    where_ = name;
  }

  void add(const std::string& name, const StateDictionary& found, const at::Tensor& expected) {
    const auto entry = found.find(name);
    if (entry == found.end() || entry->second.sizes() != expected.sizes()) {
      return add(name + (entry == found.end() ? " (missing)" : " (another shape)"), missing);
    }
    const at::Tensor wanted = expected.detach().to(at::kDouble);
    const double scale = wanted.abs().max().item<double>();
    const double difference = (entry->second.to(at::kDouble) - wanted).abs().max().item<double>();
    add(name, scale > 0 ? difference / scale : difference);
  }

  double worst() const { return worst_; }
  const std::string& where() const { return where_; }

 private:
  static constexpr double missing = 1e300;
  double worst_ = 0;
  std::string where_;
};

double relative(double found, double expected) {
  return std::abs(found - expected) / std::max(std::abs(expected), 1e-300);
}

void compare(Comparison& comparison, const strategies::PendingStep& found,
             const StateDictionary& state, const OracleStep& expected, int step) {
  comparison.add(fmt::format("the loss of step {}", step), relative(found.loss(), expected.loss));
  if (expected.gradient_norm > 0) {
    comparison.add(fmt::format("the gradients' norm of step {}", step),
                   relative(found.gradient_norm(), expected.gradient_norm));
  }
  for (const auto& [name, tensor] : expected.state) comparison.add(name, state, tensor);
}

}  // namespace

/// Keeps a model's running statistics, one copy a replica.
class Oracle::ReplicaBuffers {
 public:
  ReplicaBuffers(const models::Model& model, const std::vector<schedules::Slice>& partition)
      : live_(models::buffers(model.layers)) {
    for (const auto& slice : partition) kept_[slice.replica] = copies();
  }

  /// Every replica continues from the first one's.
  void begin_step() {
    if (!kept_.contains(0)) return;
    for (auto& [replica, tensors] : kept_) tensors = kept_.at(0);
  }
  /// Makes the model work with this replica's.
  void enter(int replica) {
    for (std::size_t index = 0; index < live_.size(); ++index) {
      live_[index].tensor.copy_(kept_.at(replica)[index]);
    }
  }
  void leave(int replica) { kept_[replica] = copies(); }

 private:
  std::vector<at::Tensor> copies() const {
    std::vector<at::Tensor> tensors;
    for (const auto& entry : live_) tensors.push_back(entry.tensor.clone());
    return tensors;
  }

  std::vector<NamedTensor> live_;
  std::map<int, std::vector<at::Tensor>> kept_;
};

Oracle::Oracle(const models::Workload& workload, const models::Batch& batch,
               std::vector<schedules::Slice> partition, int replica)
    : workload_(contiguous(workload.options())),
      batch_(with_contiguous_inputs(batch)),
      partition_(std::move(partition)),
      replica_(replica),
      model_(workload_.make_model()),
      masters_(masters_of(workload_, model_)),
      parameters_(masters_ ? masters_->parameters() : models::parameters(model_.layers)),
      optimizer_(make_optimizer(workload_.options().optimizer, tensors_of(parameters_))),
      buffers_(std::make_unique<ReplicaBuffers>(model_, partition_)) {}

Oracle::~Oracle() = default;

void Oracle::shake(double deviation, std::int64_t draw) {
  const c10::AutoGradMode no_gradient(false);
  const std::uint64_t seed = workload_.options().seed + static_cast<std::uint64_t>(draw);
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  for (const auto& [name, tensor] : parameters_) {
    tensor.mul_(1 + deviation * at::randn(tensor.sizes(), generator, tensor.options()));
  }
}

void Oracle::set_batch(const models::Batch& batch) { batch_ = with_contiguous_inputs(batch); }

OracleStep Oracle::step(const OracleUpdate& update) {
  const models::ReferenceKernelsGuard reference_kernels;
  const models::WorkloadOptions& options = workload_.options();
  optimizer_->zero_grad();
  OracleStep step;
  buffers_->begin_step();
  if (masters_) masters_->begin_step();
  for (const auto& slice : partition_) {
    buffers_->enter(slice.replica);
    const at::Tensor loss = slice_loss(workload_, model_, batch_, slice);
    loss.backward();
    if (masters_) masters_->add_gradients();
    step.loss += loss.item<double>();
    buffers_->leave(slice.replica);
  }
  if (update.exchanged_in) {
    for (const auto& [name, tensor] : parameters_) {
      if (!tensor.grad().defined()) continue;
      tensor.mutable_grad() = tensor.grad().to(*update.exchanged_in).to(tensor.scalar_type());
    }
  }
  if (options.optimizer.clip_norm > 0) {
    step.gradient_norm =
        torch::nn::utils::clip_grad_norm_(tensors_of(parameters_), options.optimizer.clip_norm);
  }
  if (!update.skipped) optimizer_->step();
  buffers_->enter(replica_);
  step.state = state_of(model_, parameters_, *optimizer_, options.optimizer);
  return step;
}

void require_gradients(const OracleStep& step) {
  for (const auto& [name, tensor] : step.state) {
    constexpr std::string_view prefix = "gradient.";
    if (!name.starts_with(prefix)) continue;
    if (tensor.defined() && tensor.abs().max().item<double>() > 0) continue;
    throw std::runtime_error(
        fmt::format("verification: the gradient of {} is zero on one device, so a comparison "
                    "proves nothing; use another seed or batch",
                    name.substr(prefix.size())));
  }
}

double Oracle::evaluation_loss() {
  const models::ReferenceKernelsGuard reference_kernels;
  const c10::AutoGradMode no_gradient(false);
  models::set_training(model_.layers, false);
  buffers_->enter(0);
  if (masters_) masters_->begin_step();
  double sum = 0;
  for (const auto& slice : partition_) {
    sum += slice_loss(workload_, model_, batch_, slice).item<double>();
  }
  models::set_training(model_.layers, true);
  return sum;
}

reports::Verdict compare_with_oracle(strategies::Strategy& strategy,
                                     const models::Workload& workload, double tolerance) {
  const models::Batch batch = workload.make_batch(0);
  const auto partition = strategy.batch_partition(batch.size());
  Oracle oracle(workload, batch, partition, strategy.replica());
  Comparison comparison;
  for (int step = 1; step <= verified_steps; ++step) {
    const OracleStep expected = oracle.step();
    if (step == 1) require_gradients(expected);
    const auto pending = strategy.step(batch);
    compare(comparison, *pending, strategy.state(), expected, step);
    // Skips the last step: the evaluation uses the weights that the strategy left.
    if (step < verified_steps) strategy.load(expected.state);
  }
  comparison.add("loss in evaluation mode",
                 relative(strategy.evaluate(batch).loss, oracle.evaluation_loss()));

  reports::Verdict result;
  const std::size_t slices = partition.size();
  result.oracle = fmt::format("one device, {} micro-batch{}, {} steps, float64", slices,
                              slices == 1 ? "" : "es", verified_steps);
  result.max_relative_error = comparison.worst();
  result.tolerance = tolerance;
  result.passed = comparison.worst() <= tolerance;
  if (!result.passed) {
    result.message = fmt::format("{} differs from the oracle by {:.3g} of its largest element",
                                 comparison.where(), comparison.worst());
  }
  return result;
}

double forward_loss(const models::Workload& workload, const models::Batch& batch,
                    const std::vector<schedules::Slice>& partition) {
  const models::ReferenceKernelsGuard reference_kernels;
  const c10::AutoGradMode no_gradient(false);
  std::vector<at::Tensor> activations;
  for (const auto& slice : partition) {
    activations.push_back(batch.slice(slice.start, slice.count).inputs);
  }
  double sum = 0;
  models::Model model = workload.make_meta_model();
  for (auto& layer : model.layers) {
    const bool last = &layer == &model.layers.back();
    const auto only = std::move(layer);  // memory never holds more than one
    workload.materialise(*only, at::kCPU);
    for (std::size_t index = 0; index < partition.size(); ++index) {
      const schedules::Slice& slice = partition[index];
      const models::SamplePlaceGuard place(workload.place_of(batch, slice.start));
      const at::Tensor output = only->forward(std::exchange(activations[index], {}));
      if (!last) {
        activations[index] = output;
        continue;
      }
      const at::Tensor targets = batch.slice(slice.start, slice.count).targets;
      sum += workload.loss(output, targets, slice.weight(batch.size())).item<double>();
    }
  }
  return sum;
}

}  // namespace stratagem::bench
