#include "bench/oracle/oracle.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/api/include/torch/nn/utils/clip_grad.h>
#include <torch/csrc/api/include/torch/optim/adam.h>
#include <torch/csrc/api/include/torch/optim/adamw.h>
#include <torch/csrc/api/include/torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>

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

/// What an optimizer keeps for a parameter, under the names of models::Optimizer::state().
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

/// A model's running statistics, one copy a replica.
class ReplicaBuffers {
 public:
  ReplicaBuffers(const models::Model& model, const std::vector<schedules::Slice>& partition)
      : live_(models::buffers(model.layers)) {
    for (const auto& slice : partition) kept_[slice.replica] = copies();
  }

  /// Every replica goes on from the first one's.
  void begin_step() {
    if (!kept_.contains(0)) return;
    for (auto& [replica, tensors] : kept_) tensors = kept_.at(0);
  }
  /// The model works with this replica's from now on.
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

StateDictionary state_of(const models::Model& model, const std::vector<NamedTensor>& parameters,
                         torch::optim::Optimizer& optimizer,
                         const models::OptimizerOptions& options) {
  StateDictionary state;
  for (const auto& [name, tensor] : optimizer_state(optimizer, options, parameters)) {
    state[name] = tensor.clone();
  }
  for (const auto& [name, tensor] : parameters) {
    state[name] = tensor.detach().clone();
    state["gradient." + name] = tensor.grad().clone();
  }
  for (const auto& [name, tensor] : models::buffers(model.layers)) state[name] = tensor.clone();
  return state;
}

at::Tensor slice_loss(const models::Workload& workload, const models::Model& model,
                      const models::Batch& batch, const schedules::Slice& slice) {
  const models::Batch part = batch.slice(slice.start, slice.count);
  const at::Tensor output = models::forward(model.layers, part.inputs);
  return workload.loss(output, part.targets, slice.weight(batch.size()));
}

/// What a mixed workload trains: parameters of the master format, and copies of the model's own,
/// which it computes with and whose gradients of each micro-batch are added up in the master's.
class MasterParameters {
 public:
  MasterParameters(const models::Workload& workload, const models::Model& model)
      : dtype_(workload.options().dtype), parameters_(models::parameters(model.layers)) {
    for (auto& [name, tensor] : parameters_) {
      masters_.push_back({name, tensor.detach().clone().set_requires_grad(true)});
      tensor.set_data(tensor.detach().to(dtype_));
    }
  }

  const std::vector<NamedTensor>& masters() const { return masters_; }

  void begin_step() {
    const at::NoGradGuard no_gradient;
    for (std::size_t index = 0; index < masters_.size(); ++index) {
      parameters_[index].tensor.detach().copy_(masters_[index].tensor.detach());
      masters_[index].tensor.mutable_grad() = at::zeros_like(masters_[index].tensor.detach());
    }
  }

  void add_gradients() {
    const at::NoGradGuard no_gradient;
    for (std::size_t index = 0; index < masters_.size(); ++index) {
      at::Tensor& gradient = parameters_[index].tensor.mutable_grad();
      masters_[index].tensor.mutable_grad().add_(gradient);
      gradient.reset();
    }
  }

 private:
  at::ScalarType dtype_;
  std::vector<NamedTensor> parameters_;  // the model's
  std::vector<NamedTensor> masters_;
};

void require_gradients(const std::vector<NamedTensor>& parameters) {
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.grad().defined() || tensor.grad().abs().max().item<double>() == 0) {
      throw std::runtime_error(fmt::format(
          "the oracle's gradient of {} is zero: a comparison with it would prove nothing", name));
    }
  }
}

/// Keeps the largest error and where it stands.
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

}  // namespace

OracleRun run_oracle(const models::Workload& workload, const models::Batch& batch,
                     const std::vector<schedules::Slice>& partition, int replica, int steps,
                     bool evaluates) {
  const models::ReferenceKernelsGuard reference_kernels;
  models::WorkloadOptions plain = workload.options();
  plain.format = at::MemoryFormat::Contiguous;
  const models::Workload contiguous(plain);
  const models::Model model = contiguous.make_model();
  const models::Batch data{batch.inputs.contiguous(), batch.targets};
  std::optional<MasterParameters> mixed;
  if (contiguous.master_dtype() != plain.dtype) mixed.emplace(contiguous, model);
  const auto parameters = mixed ? mixed->masters() : models::parameters(model.layers);
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  const auto optimizer = make_optimizer(plain.optimizer, tensors);
  ReplicaBuffers buffers(model, partition);

  OracleRun run;
  for (int step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    OracleStep entry;
    buffers.begin_step();
    if (mixed) mixed->begin_step();
    for (const auto& slice : partition) {
      buffers.enter(slice.replica);
      const at::Tensor loss = slice_loss(contiguous, model, data, slice);
      loss.backward();
      if (mixed) mixed->add_gradients();
      entry.loss += loss.item<double>();
      buffers.leave(slice.replica);
    }
    // Few bits have gradients that are too small for them.
    if (step == 0 && plain.dtype == at::kDouble) require_gradients(parameters);
    if (plain.optimizer.clip_norm > 0) {
      entry.gradient_norm = torch::nn::utils::clip_grad_norm_(tensors, plain.optimizer.clip_norm);
    }
    optimizer->step();
    buffers.enter(replica);
    entry.state = state_of(model, parameters, *optimizer, plain.optimizer);
    run.steps.push_back(std::move(entry));
  }

  if (!evaluates) return run;
  const c10::AutoGradMode no_gradient(false);
  models::set_training(model.layers, false);
  buffers.enter(0);
  if (mixed) mixed->begin_step();
  for (const auto& slice : partition) {
    run.evaluation_loss += slice_loss(contiguous, model, data, slice).item<double>();
  }
  return run;
}

reports::Verdict compare_with_oracle(strategies::Strategy& strategy,
                                     const models::Workload& workload, double tolerance) {
  const models::Batch batch = workload.make_batch(0);
  const auto partition = strategy.batch_partition(batch.size());
  const OracleRun oracle =
      run_oracle(workload, batch, partition, strategy.replica(), verified_steps);
  Comparison comparison;
  for (std::size_t index = 0; index < oracle.steps.size(); ++index) {
    const OracleStep& expected = oracle.steps[index];
    const auto pending = strategy.step(batch);
    const StateDictionary state = strategy.state();
    comparison.add(fmt::format("the loss of step {}", index + 1),
                   relative(pending->loss(), expected.loss));
    if (expected.gradient_norm > 0) {
      comparison.add(fmt::format("the gradients' norm of step {}", index + 1),
                     relative(pending->gradient_norm(), expected.gradient_norm));
    }
    for (const auto& [name, tensor] : expected.state) comparison.add(name, state, tensor);
    // Not after the last: the evaluation sees the weights as the strategy left them.
    if (index + 1 < oracle.steps.size()) strategy.load(expected.state);
  }
  comparison.add("loss in evaluation mode",
                 relative(strategy.evaluate(batch).loss, oracle.evaluation_loss));

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
  models::Model model = workload.make_meta_model();
  for (auto& layer : model.layers) {
    const auto only = std::move(layer);  // there is never memory for more than one
    workload.materialise(*only, at::kCPU);
    for (at::Tensor& activation : activations) activation = only->forward(activation);
  }
  double sum = 0;
  for (std::size_t index = 0; index < partition.size(); ++index) {
    const schedules::Slice& slice = partition[index];
    const at::Tensor targets = batch.slice(slice.start, slice.count).targets;
    sum += workload.loss(activations[index], targets, slice.weight(batch.size())).item<double>();
  }
  return sum;
}

}  // namespace stratagem::bench
