#include "bench/config/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "bench/config/catalogue.h"
#include "strategies/registry.h"
#include "strategies/runtime/parse.h"
#include "strategies/runtime/require_memory.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/schedule_file.h"

namespace stratagem::bench {
namespace {

using ranks::Mesh;
using strategies::StrategyEntry;

/// The stages of a replica if a mesh has replicas and stages, and the user names neither.
constexpr int usual_stages = 2;

Mesh default_mesh(const StrategyEntry& strategy, int devices) {
  if (!strategy.multi_device) return Mesh();
  if (const auto mesh = usual_mesh(strategy.usually_over(), devices)) return *mesh;
  throw std::invalid_argument(
      fmt::format("--devices {}: {} needs an even number of devices, 4 or more; or give --mesh",
                  devices, strategy.name));
}

std::vector<std::string> strategies_over(const std::string& dimension) {
  std::vector<std::string> names = strategies::strategy_names();
  std::erase_if(names, [&](const std::string& name) {
    return !strategies::find_strategy(name).spreads_over(dimension);
  });
  return names;
}

Mesh mesh_of(const Config& config, const StrategyEntry& strategy) {
  const int devices = static_cast<int>(config.devices);
  if (config.mesh == "auto" || !strategy.multi_device) return default_mesh(strategy, devices);
  const Mesh mesh = ranks::parse_mesh(config.mesh);
  for (const auto& [name, size] : mesh.dimensions()) {
    if (size > 1 && !strategy.spreads_over(name)) {
      throw std::invalid_argument(fmt::format(
          "--mesh {}: {} has no dimension {}; its dimensions are {}; strategies with {} are {}",
          config.mesh, strategy.name, name, fmt::join(strategy.dimensions, ", "), name,
          fmt::join(strategies_over(name), ", ")));
    }
  }
  if (mesh.size() != devices) {
    throw std::invalid_argument(
        fmt::format("--mesh {}: has {} devices, but --devices is {}; give equal numbers",
                    config.mesh, mesh.size(), devices));
  }
  return mesh;
}

/// Returns whether the devices of a replica's stages are consecutive.
bool has_neighbouring_stages(const Mesh& mesh) {
  return mesh.size("pipeline") == 1 || mesh.size("data") == 1 || mesh.coordinate(1, "data") == 0;
}

/// Refuses a replica with fewer samples than micro-batches.
void require_samples(std::int64_t samples, std::int64_t parts) {
  if (samples >= parts) return;
  throw std::invalid_argument(
      fmt::format("--global-batch-size: a replica has {} samples for {} parts; use a larger batch",
                  samples, parts));
}

/// Refuses more micro-batches than the plan of a step can hold.
void require_memory_of_plan(const strategies::PlanRequest& request,
                            const strategies::PlanOutline& outline) {
  constexpr double actions = 24;  // for a micro-batch on a stage, in all schedules of a plan
  const bool by_size = outline.cut_by == strategies::MicroBatchOption::split_size;
  const std::int64_t size = request.options.split_size;
  const std::int64_t steps = request.options.accumulation_steps;
  const auto parts =
      static_cast<double>(by_size ? request.samples / size : steps * request.arrangement.replicas);
  const double stages = strategies::stages_of(request, outline);
  runtime::require_memory(
      parts * (sizeof(schedules::Slice) + stages * actions * sizeof(schedules::Action)),
      fmt::format("{} {}: {:.0f} micro-batches", by_size ? "--split-size" : "--accumulation-steps",
                  by_size ? size : steps, parts));
}

}  // namespace

std::vector<int> Placement::group(int rank,
                                  std::initializer_list<std::string_view> dimensions) const {
  std::vector<int> members;
  for (const int position : mesh.group(rank * devices_per_rank(), dimensions)) {
    const int member = position / devices_per_rank();
    if (members.empty() || members.back() != member) members.push_back(member);
  }
  return members;
}

std::optional<Mesh> usual_mesh(const std::vector<std::string>& dimensions, int devices) {
  if (dimensions.size() == 1) return Mesh({{dimensions.front(), devices}});
  if (devices < 2 * usual_stages || devices % usual_stages != 0) return std::nullopt;
  return Mesh({{"data", devices / usual_stages}, {"pipeline", usual_stages}});
}

int usual_ranks(const Mesh& mesh) {
  const bool of_one_rank_each = mesh.size("tensor") * mesh.size("context") > 1;
  return of_one_rank_each || !has_neighbouring_stages(mesh) ? mesh.size() : mesh.size("data");
}

schedules::Sharded sharded_state(const Config& config) {
  const StrategyEntry& strategy = strategies::find_strategy(config.strategy);
  return strategy.shards.value_or(config.shard);
}

int copies_of(const Config& config) { return strategies::copies_of(plan_request(config)); }

runtime::Choice<"gloo", "nccl"> backend_of(const Config& config) {
  const bool is_nccl =
      config.backend == "auto" ? config.device == "cuda" : config.backend == "nccl";
  using Backend = runtime::Choice<"gloo", "nccl">;
  return is_nccl ? Backend("nccl") : Backend("gloo");
}

bool scales_loss(const Config& config) {
  if (config.mixed_precision != "float16" || config.loss_scale == "none") return false;
  return runtime::number_in<double>(config.loss_scale).value_or(0) != 1;
}

strategies::PlanRequest plan_request(const Config& config, strategies::ModelParts parts) {
  const Placement placement = placement_of(config);
  const strategies::StrategyOptions& options = config;
  strategies::PlanRequest request{.options = options,
                                  .arrangement = {.replicas = placement.replicas(),
                                                  .devices = placement.pipeline_devices(),
                                                  .ranks = placement.pipeline_ranks(),
                                                  .tensor_ranks = placement.tensor_ranks(),
                                                  .context_ranks = placement.context_ranks()},
                                  .parts = std::move(parts),
                                  .mixed_precision = config.mixed_precision != "none",
                                  .needs_norm = config.clip_gradients > 0 || scales_loss(config),
                                  .samples = config.global_batch_size};
  request.options.shard = sharded_state(config);
  request.parts.has_common_heads =
      placement.tensor_ranks() > 1 &&
      models::find_model(config.model).is_copied_by(placement.tensor_ranks());
  return request;
}

strategies::PlanOutline outline_of(const Config& config) {
  const StrategyEntry& strategy = strategies::find_strategy(config.strategy);
  return strategy.outline ? strategy.outline(plan_request(config)) : strategies::PlanOutline();
}

strategies::StepPlan plan_of(const Config& config, strategies::ModelParts parts) {
  return strategies::plan_of(plan_request(config, std::move(parts)), outline_of(config));
}

int stages_of(const Config& config) {
  return strategies::stages_of(plan_request(config), outline_of(config));
}

bool can_train(const Config& config, const Catalogue& catalogue) {
  const StrategyEntry& strategy = *catalogue.strategy(config.strategy);
  const models::ModelEntry& model = *catalogue.model(config.model);
  return (!strategy.can_train || strategy.can_train(model)) && stages_of(config) <= model.layers &&
         (placement_of(config).tensor_ranks() == 1 || !model.sharded_sizes.empty()) &&
         (placement_of(config).context_ranks() == 1 || model.shares_positions()) &&
         !(model.fixed_size && splits_backward(config, config.schedule));
}

bool splits_backward(const Config& config, const std::string& schedule) {
  const int devices = placement_of(config).pipeline_devices();
  if (devices == 1) return false;
  const int each =
      schedules::find_schedule(schedule).stages_for(static_cast<int>(config.virtual_stages));
  // A file's order may have fewer micro-batches than the step of a generated schedule.
  const int micro_batches = schedule.starts_with(schedules::order_prefix) ? 1 : 2 * devices;
  return schedules::make_schedule(
             schedule,
             {.devices = devices, .micro_batches = micro_batches, .stages_per_device = each})
      .split_backward;
}

Placement placement_of(const Config& config) {
  const StrategyEntry& strategy = strategies::find_strategy(config.strategy);
  Placement placement{.mesh = mesh_of(config, strategy)};
  if (strategy.one_process) {
    if (config.ranks <= 1) return placement;
    throw std::invalid_argument(
        fmt::format("--ranks {}: {} drives its devices from one process; leave it out, or train "
                    "with ddp",
                    config.ranks, strategy.name));
  }
  placement.ranks = usual_ranks(placement.mesh);
  if (config.ranks == 0 || !strategy.multi_device) return placement;
  const int ranks = static_cast<int>(config.ranks);
  if (placement.tensor_ranks() * placement.context_ranks() > 1 && ranks != placement.devices()) {
    throw std::invalid_argument(fmt::format(
        "--ranks {}: {} parallelism needs one rank per device; leave it out, or give {}", ranks,
        placement.tensor_ranks() > 1 ? "tensor" : "context", placement.devices()));
  }
  if (!has_neighbouring_stages(placement.mesh) && ranks != placement.devices()) {
    throw std::invalid_argument(
        fmt::format("--ranks {}: with --mesh {} a rank's devices would be of several replicas; "
                    "leave it out, or write pipeline last",
                    ranks, config.mesh));
  }
  if (ranks % placement.replicas() != 0 || placement.devices() % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("--ranks {}: {} over {} takes a multiple of {} (its replicas) that divides {} "
                    "(its devices)",
                    ranks, strategy.name, placement.mesh.to_string(), placement.replicas(),
                    placement.devices()));
  }
  placement.ranks = ranks;
  return placement;
}

std::vector<schedules::Slice> partition_of(const Config& config) {
  const strategies::PlanRequest request = plan_request(config);
  const strategies::PlanOutline outline = outline_of(config);
  const bool by_count = outline.cut_by == strategies::MicroBatchOption::accumulation_steps;
  if (outline.cut_by != strategies::MicroBatchOption::split_size && !outline.in_one_process) {
    require_samples(request.samples / request.arrangement.replicas,
                    by_count ? config.accumulation_steps : 1);
  }
  require_memory_of_plan(request, outline);
  return strategies::partition_of(request, outline);
}

std::vector<schedules::Slice> slices_of(const Config& config) {
  std::vector<schedules::Slice> slices = partition_of(config);
  std::erase_if(slices, [](const schedules::Slice& slice) { return !slice.counts; });
  return slices;
}

std::vector<std::int64_t> micro_batch_sizes(const Config& config) {
  std::vector<std::int64_t> sizes;
  for (const auto& slice : slices_of(config)) sizes.push_back(slice.count);
  return sizes;
}

}  // namespace stratagem::bench
