#include "strategies/stages/layer_groups.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "strategies/distributed/process_group.h"
#include "strategies/stages/partition.h"

namespace stratagem::stages {
namespace {

using Boundaries = std::vector<std::size_t>;

/// Returns the boundaries of buckets; without overlap one bucket takes everything.
Boundaries buckets_of(models::LayerSpan layers, const strategies::StrategyOptions& options,
                      double shrunk) {
  constexpr double everything = std::numeric_limits<double>::infinity();
  return options.overlap ? bucket_boundaries(layers, strategies::bucket_bytes(options) * shrunk,
                                             first_bucket_bytes * shrunk)
                         : bucket_boundaries(layers, everything, everything);
}

std::vector<std::string> names_of(models::LayerSpan layers) {
  std::vector<std::string> names;
  for (const auto& layer : layers) names.push_back(layer->name());
  return names;
}

}  // namespace

std::vector<std::size_t> group_boundaries(models::LayerSpan layers, double group_bytes) {
  Boundaries boundaries;
  double filled = 0;
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const double bytes = parameter_bytes(*layers[index]);
    if (bytes > 0 && filled > 0 && filled + bytes > group_bytes) {
      boundaries.push_back(index);
      filled = 0;
    }
    filled += bytes;
  }
  return boundaries;
}

std::set<int> kept_groups(models::LayerSpan layers, const Boundaries& boundaries,
                          const strategies::StrategyOptions& options) {
  std::set<int> kept;
  if (options.recompute_layers.empty()) return kept;
  for (std::size_t group = 0; group <= boundaries.size(); ++group)
    kept.insert(static_cast<int>(group));
  for (const std::string& name : options.recompute_layers) {
    bool found = false;
    for (std::size_t index = 0; index < layers.size(); ++index) {
      if (!models::lies_in(layers[index]->name(), name)) continue;
      const auto next = std::ranges::upper_bound(boundaries, index);
      kept.erase(static_cast<int>(next - boundaries.begin()));
      found = true;
    }
    if (!found) {
      throw std::invalid_argument(fmt::format("--recompute-layers: no layer \"{}\"; choices: {}",
                                              name, fmt::join(names_of(layers), ", ")));
    }
  }
  return kept;
}

LayerGroups groups_of(const models::LayerList& layers, const strategies::PlanRequest& request,
                      double width) {
  constexpr double bytes_per_mebibyte = 1024.0 * 1024.0;
  const double shrunk = width * width;
  const strategies::StrategyOptions& options = request.options;
  const bool in_buckets = options.shard == "none" && request.arrangement.copies() > 1;
  const auto cuts = boundaries_of(layers, options.cut);
  LayerGroups groups;
  std::size_t begin = 0;
  for (std::size_t stage = 0; stage <= cuts.size(); ++stage) {
    const std::size_t end = stage < cuts.size() ? cuts[stage] : layers.size();
    const models::LayerSpan own = models::LayerSpan(layers).subspan(begin, end - begin);
    const Boundaries inner =
        in_buckets ? buckets_of(own, options, shrunk)
                   : group_boundaries(own, options.shard_group_mb * bytes_per_mebibyte * shrunk);
    if (stage > 0) groups.boundaries.push_back(begin);
    for (const std::size_t boundary : inner) groups.boundaries.push_back(begin + boundary);
    groups.per_stage.push_back(static_cast<int>(inner.size()) + 1);
    const auto number = static_cast<int>(groups.boundaries.size());
    if (models::parameters(own).empty()) groups.empty.insert(number);
    begin = end;
  }
  groups.kept = kept_groups(layers, groups.boundaries, options);
  return groups;
}

strategies::PlanRequest plan_request(const strategies::StrategyContext& context) {
  const strategies::RankGroups& groups = context.groups;
  const auto size_of = [](const distributed::ProcessGroup* group) {
    return group == nullptr ? 1 : group->size();
  };
  const models::WorkloadOptions& workload = context.workload.options();
  const models::Model model = context.workload.make_meta_model();
  const int ranks = size_of(groups.activations);
  strategies::PlanRequest request{
      .options = context.options,
      .arrangement = {.replicas = groups.replicas,
                      .devices = ranks * static_cast<int>(context.devices.size()),
                      .ranks = ranks,
                      .tensor_ranks = size_of(groups.tensor),
                      .context_ranks = size_of(groups.context)},
      .parts = {.has_buffers = !models::buffers(model.layers).empty(),
                .has_common_heads = context.workload.entry().is_copied_by(size_of(groups.tensor))},
      .mixed_precision = workload.mixed,
      .needs_norm = workload.optimizer.clip_norm > 0 || workload.loss_scale != 1,
      .replica = groups.replica};
  if (strategies::has_layer_groups(request)) {
    const auto cut = groups_of(model.layers, request, workload.width);
    request.parts.groups_of_stage = cut.per_stage;
    request.parts.empty_groups = cut.empty;
    request.parts.kept_groups = cut.kept;
  }
  return request;
}

}  // namespace stratagem::stages
