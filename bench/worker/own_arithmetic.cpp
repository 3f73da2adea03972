#include "bench/worker/own_arithmetic.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/config/placement.h"
#include "bench/oracle/arithmetic_scope.h"
#include "bench/oracle/layer_comparison.h"
#include "bench/oracle/step_comparison.h"
#include "bench/worker/session.h"
#include "bench/worker/timed_run.h"
#include "reports/json_fields.h"

namespace stratagem::bench {
namespace {

// Takes some seconds on two cores in all. float64 is several times as slow: ATen has no oneDNN
// kernels for it.
constexpr double affordable_layer_flops = 1e11;
constexpr double affordable_exact_flops = 2e9;
constexpr StepSize affordable_step = {.flops = 4e9, .parameters = 40'000'000};

/// A unit that rectifies may be within rounding of zero, on either side of it: that happens on one
/// batch, a wrong kernel on all of them.
constexpr std::uint64_t most_batches = 3;

/// Computes one step's operations for a model of each width and any batch.
class StepSizes {
 public:
  StepSize of(const Config& config, double width) {
    models::WorkloadOptions options = workload_options(config);
    options.width = width;
    const models::Workload workload(options);
    auto [found, is_new] = models_.try_emplace(width);
    if (is_new) found->second = workload.make_meta_model();
    const models::LayerSpan layers = found->second.layers;
    std::int64_t parameters = 0;
    for (const auto& each : models::parameters(layers)) parameters += each.tensor.numel();
    const models::Shape input = workload.input_shape(config.global_batch_size);
    return {models::flops(layers, input, false).total(), parameters};
  }

 private:
  std::map<double, models::Model> models_;
};

VerificationScope step_scope(const Config& row) {
  const Placement placement = placement_of(row);
  StepSize affordable = affordable_step;
  affordable.flops /= placement.ranks;  // each makes its own references
  affordable.parameters /= placement.ranks;
  StepSizes sizes;
  return shrink_step(
      row, scope_traits(row), placement.replicas(), outline_of(row).cut_by, affordable,
      [&sizes](const Config& config, double width) { return sizes.of(config, width); });
}

OwnArithmetic arithmetic_of(const Config& row) {
  const models::WorkloadOptions options = workload_options(row);
  OwnArithmetic own{.dtype = options.dtype,
                    .format = options.format,
                    .roundoff = unit_roundoff(options.dtype),
                    .reference = options.dtype,
                    .split_backward = plan_of(row).schedule.split_backward};
  if (row.device == "cuda") {
    // The CPU lacks kernels for some functions that a GPU computes in fewer bits.
    if (options.dtype != at::kDouble) own.reference = at::kFloat;
    if (row.tf32 && options.dtype == at::kFloat) own.roundoff = tf32_roundoff;
  }
  return own;
}

/// The layers of a row's model with a scope's inputs.
class ScopedLayers {
 public:
  ScopedLayers(const Config& row, const models::Model& model, const LayerScope& scope)
      : scope_(scope), workload_(options_of(row, scope)) {
    const auto samples = static_cast<std::int64_t>(workload_.options().batch);
    units_ = layer_units(model.layers, workload_.input_shape(samples));
  }

  const std::vector<LayerUnit>& units() const { return units_; }

  SizedLayer at(std::size_t index) const {
    const LayerUnit& unit = units_.at(index);
    return {unit, scope_.samples, unit.first ? workload_.make_batch(0).inputs : at::Tensor()};
  }

  /// Returns those of both micro-batches, through distinct layers.
  double flops() const {
    double sum = 0;
    for (const std::size_t index : distinct(units_)) sum += units_[index].flops;
    const auto samples = static_cast<double>(scope_.samples[0] + scope_.samples[1]);
    return sum * samples / static_cast<double>(workload_.options().batch);
  }

 private:
  static models::WorkloadOptions options_of(const Config& row, const LayerScope& scope) {
    models::WorkloadOptions options = workload_options(row);
    options.batch = std::max(scope.samples[0], scope.samples[1]);
    options.image_size = scope.image_size;
    options.sequence_length = scope.sequence_length;
    return options;
  }

  LayerScope scope_;
  models::Workload workload_;
  std::vector<LayerUnit> units_;
};

std::string reference_formats(const Config& row, const OwnArithmetic& own) {
  if (own.reference == at::kDouble) return "float64";
  return fmt::format("{} and float64",
                     own.reference == own.dtype ? compute_format(row) : "float32");
}

struct Part {
  Differences differences;
  std::string compared;  // "23 layers"
  std::string scope;
};

/// Compares the layers on the session's first device.
Part layers_of(const Config& row, const OwnArithmetic& own) {
  const models::Workload workload(workload_options(row));
  const models::Model model = workload.make_meta_model();
  const auto sizes = micro_batch_sizes(row);
  const LayerScope whole{.samples = {sizes.front(), sizes.back()},
                         .image_size = workload.image_size(),
                         .sequence_length = workload.sequence_length()};
  const ScopeTraits traits = scope_traits(row);
  const auto flops_of = [&](const LayerScope& scope) {
    return ScopedLayers(row, model, scope).flops();
  };
  const LayerScope full = shrink_layers(whole, traits, affordable_layer_flops, flops_of);
  const LayerScope exact = shrink_layers(full, traits, affordable_exact_flops, flops_of);
  const ScopedLayers full_layers(row, model, full);
  const ScopedLayers exact_layers(row, model, exact);

  Part part;
  const auto indices = distinct(full_layers.units());
  for (const std::size_t index : indices) {
    for (models::Layer* layer : full_layers.units()[index].layers) {
      workload.materialise(*layer, at::kCPU);
    }
    part.differences.add("", compare_layer(full_layers.at(index), exact_layers.at(index), own));
  }
  part.compared = fmt::format("{} layers", indices.size());
  part.scope = "layers " + difference(whole, full);
  if (exact != full) part.scope += fmt::format(" (float64: {})", difference(full, exact));
  return part;
}

Part step_of(Session& session, const TaskContext& context, const OwnArithmetic& own,
             const std::string& scope) {
  Part part;
  const bool compressed = session.config.compression != "none";
  for (std::uint64_t batch = 0; batch < most_batches; ++batch) {
    if (batch > 0) {
      session.strategy.reset();
      session.strategy = session.make_strategy();
    }
    part.differences = compare_step(*session.strategy, *session.workload, own, batch, compressed);
    bool within = true;
    for (const auto& rank : all_gather_json(context, part.differences.within())) {
      within = within && rank.get<bool>();
    }
    if (within) break;
  }
  const std::size_t slices =
      session.strategy->batch_partition(session.workload->options().batch).size();
  part.compared = fmt::format("a step of {} micro-batch{}", slices, slices == 1 ? "" : "es");
  part.scope = "step " + scope;
  return part;
}

}  // namespace

reports::Verdict worst_of_ranks(const TaskContext& context, const reports::Verdict& own) {
  const auto by_rank = all_gather_json(context, reports::json_fields::json_of(own));
  reports::Verdict worst;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto found = reports::json_fields::read_as<reports::Verdict>(by_rank[rank], "verdict");
    const bool worse = found.passed == worst.passed ? found.max_relative_error * worst.tolerance >
                                                          worst.max_relative_error * found.tolerance
                                                    : !found.passed;
    if (rank > 0 && !worse) continue;
    worst = std::move(found);
    if (by_rank.size() > 1 && !worst.passed) {
      worst.message = fmt::format("rank {}: {}", rank, worst.message);
    }
  }
  worst.oracle = own.oracle;
  worst.scope = own.scope;
  if (by_rank.size() > 1) worst.oracle += fmt::format(", {} ranks", by_rank.size());
  return worst;
}

reports::Verdict verify_own_arithmetic(const Config& row, const TaskContext& context) {
  const VerificationScope scope = step_scope(row);
  models::WorkloadOptions options = workload_options(scope.config);
  options.width = scope.width;
  Session session(scope.config, options, context);
  OwnArithmetic own = arithmetic_of(row);
  own.device = backends::torch_device(session.group.devices.front()->description());
  own.on_device = [&session](const std::function<void()>& work) {
    session.group.devices.front()->enqueue(runtime::Stream::compute, "layers", work);
    synchronize(session);
  };
  const Part step = step_of(session, context, own, scope.text);
  // Every rank has the same kernels. Layers of a file run ATen's functions, and a ReLU inside one
  // cannot be masked: the step alone is compared.
  Part layers;
  const bool has_own_layers = !models::find_model(row.model).fixed_size;
  if (session.rank() == 0 && has_own_layers) layers = layers_of(row, own);
  Differences all = layers.differences;
  all.add("", step.differences);
  reports::Verdict verdict = all.verdict();
  const std::string comma = has_own_layers ? ", " : "";
  verdict.oracle = fmt::format("reference kernels in {}: {}{}{}", reference_formats(row, own),
                               layers.compared, comma, step.compared);
  verdict.scope = layers.scope + (has_own_layers ? "; " : "") + step.scope;
  return worst_of_ranks(context, verdict);
}

}  // namespace stratagem::bench
