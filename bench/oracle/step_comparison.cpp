#include "bench/oracle/step_comparison.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "bench/oracle/oracle.h"
#include "models/loss_scale.h"

namespace stratagem::bench {
namespace {

using strategies::StateDictionary;

constexpr std::string_view of_gradient = "gradient.";
constexpr std::string_view of_optimizer = "optimizer.";

std::string gradient_of(const std::string& parameter) {
  return std::string(of_gradient) + parameter;
}

/// Returns the kind of an entry. Roundings grow alike in a kind: gradients, parameters, buffers,
/// each of the optimizer's.
std::string kind_of(const std::string& name, const StateDictionary& state) {
  if (name.starts_with(of_gradient)) return "gradient";
  if (name.starts_with(of_optimizer)) return name.substr(0, name.find('.', of_optimizer.size()));
  return state.contains(gradient_of(name)) ? "parameter" : "buffer";
}

/// Returns "fc.weight" for "gradient.fc.weight", "optimizer.exp_avg.fc.weight" and itself.
std::string parameter_of(const std::string& name) {
  if (name.starts_with(of_gradient)) return name.substr(of_gradient.size());
  if (!name.starts_with(of_optimizer)) return name;
  return name.substr(name.find('.', of_optimizer.size()) + 1);
}

/// The step by the reference kernels in a format.
struct ReferenceStep {
  ReferenceStep(const models::Workload& workload, at::ScalarType dtype,
                strategies::Strategy& strategy, std::uint64_t batch) {
    models::WorkloadOptions options = workload.options();
    options.dtype = dtype;
    const models::Workload reference(options);
    step = Oracle(reference, reference.make_batch(batch), strategy.batch_partition(options.batch),
                  strategy.replica())
               .step();
    const models::Model model = reference.make_model();
    for (const auto& [name, tensor] : models::parameters(model.layers)) {
      before[name] = tensor.detach();
    }
  }

  /// Returns the relative size of a parameter's update.
  double update_of(const std::string& parameter) const {
    return relative_distance(before.at(parameter), step.state.at(parameter));
  }

  OracleStep step;
  StateDictionary before;  // parameters before the step
};

/// The growth of roundings in a step's sums, and in its ReLUs.
struct StepSums {
  double growth = 1;
  double undecided = 0;  // share of a gradient's norm that units near zero may have
};

StepSums sums_of(const models::Workload& workload, const OwnArithmetic& own) {
  const models::Model model = workload.make_meta_model();
  const std::int64_t batch = workload.options().batch;
  const auto inside = static_cast<double>(summed_terms(models::parameters(model.layers)));
  const double growth = std::sqrt(inside + static_cast<double>(batch));
  StepSums sums{.growth = own.sums_in_float32() ? 1 : growth, .undecided = 0};
  sums.undecided =
      undecided_share(model.layers, workload.input_shape(batch), own.roundoff * growth);
  return sums;
}

class StepBounds {
 public:
  StepBounds(const models::Workload& workload, const OwnArithmetic& own,
             const ReferenceStep& rounded, const ReferenceStep& exact, bool compressed)
      : own_(own),
        exact_(exact),
        compressed_(compressed),
        updates_by_sign_(workload.options().optimizer.kind != models::OptimizerOptions::Kind::sgd),
        sums_(sums_of(workload, own)) {
    const double roundoff = unit_roundoff(lower_of(own.reference));
    const auto measure = [&](const std::string& kind, double distance) {
      double& largest = measured_[kind];
      largest = std::max(largest, measured_growth(distance, roundoff));
    };
    measure("loss", relative_distance(rounded.step.loss, exact.step.loss));
    measure("gradient", relative_distance(rounded.step.gradient_norm, exact.step.gradient_norm));
    for (const auto& [name, tensor] : exact.step.state) {
      const double distance = relative_distance(rounded.step.state.at(name), tensor);
      const std::string kind = kind_of(name, exact.step.state);
      measure(kind == "parameter" ? name : kind, distance);
    }
  }

  double of_loss() const { return of_kind("loss"); }
  double of_gradient_norm() const { return of_kind("gradient") + sums_.undecided; }

  double of(const std::string& name) const {
    const std::string kind = kind_of(name, exact_.step.state);
    if (kind == "buffer") return of_kind(kind);
    const std::string parameter = parameter_of(name);
    const double gradient = of_kind("gradient") + sums_.undecided + of_compression(parameter);
    if (kind == "gradient") return gradient;
    if (kind != "parameter") return std::max(gradient, of_kind(kind) + sums_.undecided);
    // The old value is rounded once; the update is as inaccurate as its gradient.
    return rounding_bound(own_.roundoff, std::max(1.0, measured_.at(name))) +
           (gradient + undecided_signs(parameter, gradient)) * exact_.update_of(name);
  }

 private:
  double of_kind(const std::string& kind) const {
    return rounding_bound(own_.roundoff, std::max(sums_.growth, measured_.at(kind)));
  }

  /// Adam's first update is the sign of the gradient, which is undecided for elements within the
  /// gradient's own bound of zero. Returns their share of the update's norm, twice.
  double undecided_signs(const std::string& parameter, double bound) const {
    if (!updates_by_sign_ || !exact_.before.contains(parameter)) return 0;
    const at::Tensor gradient = exact_.step.state.at(gradient_of(parameter)).to(at::kDouble);
    const double error = bound * gradient.square().mean().sqrt().item<double>();
    return 2 * std::sqrt(gradient.abs().le(error).to(at::kDouble).mean().item<double>());
  }

  /// Returns the error of float16, which has no small numbers, on the gradient's way.
  double of_compression(const std::string& parameter) const {
    constexpr double exchanges = 4;  // two replicas' gradients, and their sum
    if (!compressed_ || !exact_.before.contains(parameter)) return 0;
    const at::Tensor& gradient = exact_.step.state.at(gradient_of(parameter));
    return exchanges * relative_distance(gradient.to(at::kHalf), gradient);
  }

  const OwnArithmetic& own_;
  const ReferenceStep& exact_;
  bool compressed_;
  bool updates_by_sign_;
  StepSums sums_;
  std::map<std::string, double> measured_;  // by kind; for each parameter by itself
};

struct Update {
  std::unique_ptr<strategies::PendingStep> step;
  StateDictionary state;  // state after it
};

/// Runs a step of a fresh strategy, halving the scale of its loss while gradients are not finite.
/// Restores running statistics that a skipped step has changed.
Update first_update(strategies::Strategy& strategy, const models::Workload& workload,
                    std::uint64_t number) {
  using models::LossScale;
  const models::Batch batch = workload.make_batch(number);
  StateDictionary before;
  if (workload.options().dynamic_loss_scale) before = strategy.state();
  while (true) {
    Update update{.step = strategy.step(batch), .state = strategy.state()};
    if (!update.step->skipped()) return update;
    const double scale = before.at(LossScale::scale_name).item<double>();
    if (scale <= 1) return update;
    before[LossScale::scale_name] =
        at::scalar_tensor(scale * LossScale::backoff_factor, at::kDouble);
    strategy.load(before);
  }
}

}  // namespace

Differences compare_step(strategies::Strategy& strategy, const models::Workload& workload,
                         const OwnArithmetic& own, std::uint64_t batch, bool compressed) {
  const Update update = first_update(strategy, workload, batch);
  const double loss = update.step->loss();
  const double norm = update.step->gradient_norm();

  const ReferenceStep exact(workload, at::kDouble, strategy, batch);
  require_gradients(exact.step);
  const ReferenceStep rounded(workload, lower_of(own.reference), strategy, batch);
  const StepBounds bounds(workload, own, rounded, exact, compressed);
  Differences differences;
  const auto compare = [&](const OracleStep& expected, const std::string& reference,
                           double factor) {
    const std::string against = " against " + reference;
    differences.add("the loss" + against, relative_distance(loss, expected.loss),
                    factor * bounds.of_loss());
    if (expected.gradient_norm > 0) {
      differences.add("the gradients' norm" + against,
                      relative_distance(norm, expected.gradient_norm),
                      factor * bounds.of_gradient_norm());
    }
    for (const auto& [name, tensor] : expected.state) {
      const auto entry = update.state.find(name);
      const at::Tensor value = entry == update.state.end() ? at::Tensor() : entry->second;
      differences.add(name + against, relative_distance(value, tensor), factor * bounds.of(name));
    }
  };
  const bool is_exact = own.reference == at::kDouble;
  compare(exact.step, "float64", is_exact ? 1 : 2);
  if (!is_exact) compare(rounded.step, "the reference kernels", 1);
  return differences;
}

}  // namespace stratagem::bench
