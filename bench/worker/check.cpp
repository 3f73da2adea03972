// check: reports which rows cannot work, before anything is measured, and fills in the cut.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "bench/config/core_demand.h"
#include "bench/timing/straggler.h"
#include "bench/worker/session.h"
#include "models/model.h"
#include "models/registry/registry.h"
#include "strategies/context_parallel/attention_form.h"
#include "strategies/data_parallel/device_balance.h"
#include "strategies/data_parallel/layer_buckets.h"
#include "strategies/distributed/network_interface.h"
#include "strategies/runtime/require_memory.h"
#include "strategies/schedules/recomputation.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/schedule_file.h"
#include "strategies/stages/layer_groups.h"
#include "strategies/stages/partition.h"

namespace stratagem::bench {
namespace {

/// Checks this rank's GPUs only if a launcher started the ranks: others check theirs on opening.
void check_devices(const Config& config, const Placement& placement, bool ranks_are_here) {
  if (config.device != "cuda") return;
  const ranks::VisibleGpus own = visible_gpus();
  if (own.identities.empty()) {
    throw std::invalid_argument(
        "--device cuda: no GPU can be used here; see `stratagem doctor`, or use --device cpu");
  }
  const auto count = static_cast<std::size_t>(ranks_are_here ? placement.ranks : 1);
  const std::vector<ranks::VisibleGpus> all(count, own);
  const auto assigned = ranks::assign_gpus(all, placement.devices_per_rank(), config.device_ids);
  if (backend_of(config) == "nccl") ranks::require_gpus_of_their_own(all, assigned);
}

void check_communication(const Config& config, int ranks) {
  if (config.backend == "nccl" && config.device != "cuda") {
    throw std::invalid_argument("--backend nccl: needs --device cuda; on CPU devices use gloo");
  }
  // NCCL does not read GLOO_SOCKET_IFNAME.
  const bool chosen = config.interface != "auto";
  if (ranks == 1 || (!chosen && config.device == "cuda")) return;
  distributed::require_interface(chosen ? config.interface : "");
}

std::vector<std::string> models_that(const std::function<bool(const models::ModelEntry&)>& holds) {
  std::vector<std::string> names;
  for (const std::string& name : models::model_names()) {
    if (holds(models::find_model(name))) names.push_back(name);
  }
  return names;
}

/// Returns the degrees from 2 on that can share all of these sizes: "2 to 12", or "2, 4, 8".
std::string possible_degrees(const std::vector<models::ShardedSize>& sizes) {
  std::vector<std::int64_t> degrees;
  const std::int64_t most =
      std::ranges::min(sizes, {}, &models::ShardedSize::most_ranks).most_ranks();
  for (std::int64_t degree = 2; degree <= most; ++degree) {
    if (std::ranges::all_of(sizes, [=](const auto& one) { return one.can_be_shared_by(degree); })) {
      degrees.push_back(degree);
    }
  }
  if (degrees.empty()) return "no number of devices can";
  const bool all = std::ssize(degrees) == most - 1 && degrees.size() > 2;
  return all ? fmt::format("possible: 2 to {}", most)
             : fmt::format("possible: {}", fmt::join(degrees, ", "));
}

std::vector<models::ShardedSize> sharded_sizes(const Config& config) {
  const models::ModelEntry& model = models::find_model(config.model);
  std::vector<models::ShardedSize> sizes = model.sharded_sizes;
  for (models::ShardedSize& one : sizes) {
    if (one.size != models::outputs_from_options) continue;
    one.size = config.outputs == 0 ? model.classes : config.outputs;
  }
  return sizes;
}

/// Returns a note if one rank has noticeably more than its even share of a layer: its heads, say.
std::string note_of_sharing(const Config& config, std::int64_t degree) {
  constexpr double noticeable = 1.01;
  for (const models::ShardedSize& one : sharded_sizes(config)) {
    const std::int64_t size = one.size;
    const std::int64_t most = (size + degree - 1) / degree;
    if (degree == 1 || degree > size ||
        static_cast<double>(most * degree) < noticeable * static_cast<double>(size)) {
      continue;
    }
    return fmt::format("--mesh tensor={}: {} {} of {} are split unevenly into {} and {}", degree,
                       size, one.what, config.model, most, most - 1);
  }
  return "";
}

/// Refuses a sequence that the row's ranks cannot cut into equal parts.
void check_sequence(const Config& config) {
  const std::int64_t tokens = config.sequence_length;
  const std::int64_t parts = parts_of_a_sequence(config);
  if (tokens % parts == 0) return;
  const std::int64_t below = tokens / parts * parts;
  throw std::invalid_argument(
      fmt::format("--sequence-length {}: {} tokens of a sample of {} cannot be split into {} "
                  "equal parts for the ranks; possible: {}{}",
                  tokens, tokens, config.model, parts, below > 0 ? fmt::format("{}, ", below) : "",
                  below + parts));
}

/// Refuses a row whose model cannot be sharded for its strategy and mesh.
void check_sharing(const Config& config, const Placement& placement) {
  const strategies::StrategyEntry& strategy = strategies::find_strategy(config.strategy);
  const std::int64_t degree = placement.tensor_ranks();
  if (!strategy.can_train && degree == 1) return;
  const models::ModelEntry& model = models::find_model(config.model);
  const auto can_be_sharded = [&strategy](const models::ModelEntry& one) {
    return strategy.can_train ? strategy.can_train(one) : !one.sharded_sizes.empty();
  };
  if (!can_be_sharded(model)) {
    throw std::invalid_argument(fmt::format("--strategy {}: cannot shard {}; it can shard {}",
                                            config.strategy, config.model,
                                            fmt::join(models_that(can_be_sharded), ", ")));
  }
  const std::vector<models::ShardedSize> sizes = sharded_sizes(config);
  for (const models::ShardedSize& one : sizes) {
    if (one.can_be_shared_by(degree)) continue;
    throw std::invalid_argument(
        fmt::format("--mesh tensor={}: {} {} of {} cannot be split over {} ranks; {}", degree,
                    one.size, one.what, config.model, degree, possible_degrees(sizes)));
  }
}

std::vector<std::string> cut_of(const Config& config, const models::Workload& workload,
                                const models::Model& model, const TaskContext& context) {
  const int stages = stages_of(config);
  if (stages == 1) {
    const bool is_usual = config.partition == Config().partition;
    if (config.cut.empty() && is_usual) return {};
    const std::string option = config.cut.empty()
                                   ? fmt::format("--partition {}", config.partition)
                                   : fmt::format("--cut {}", fmt::join(config.cut, "+"));
    throw std::invalid_argument(option +
                                ": the row has one stage; leave it out, or give --mesh a "
                                "dimension pipeline");
  }
  if (stages > static_cast<int>(model.layers.size())) {
    throw std::invalid_argument(
        fmt::format("--devices {}: {} stages need as many layers, and {} has {}; use fewer "
                    "devices, or a schedule with fewer stages on each",
                    config.devices, stages, config.model, model.layers.size()));
  }
  if (config.cut.empty() && config.partition == "balanced") {
    backends::DeviceGroup group = open_devices(config, placement_of(config), context);
    return stages::balanced_cut(workload, stages, slices_of(config).front().count,
                                *group.devices.front(), to_milliseconds(config.timeout));
  }
  if (config.cut.empty()) return stages::choose_cut(workload, stages, config.partition);
  const auto boundaries = stages::boundaries_of(model.layers, config.cut);
  if (static_cast<int>(boundaries.size()) != stages - 1) {
    throw std::invalid_argument(
        fmt::format("--cut {}: it makes {} stages, but the row has {}; change the names, --devices "
                    "or --mesh",
                    fmt::join(config.cut, "+"), boundaries.size() + 1, stages));
  }
  return config.cut;
}

/// Refuses a row whose ranks cannot share the positions of its samples.
void check_positions(const Config& config, const Placement& placement) {
  const int ranks = placement.context_ranks();
  if (ranks == 1) return;
  const models::ModelEntry& entry = models::find_model(config.model);
  const auto shares = [](const models::ModelEntry& one) { return one.shares_positions(); };
  if (!shares(entry)) {
    throw std::invalid_argument(
        fmt::format("--mesh context={}: {} has no positions that ranks can share; these models "
                    "have: {}",
                    ranks, config.model, fmt::join(models_that(shares), ", ")));
  }
  const context_parallel::AttentionForm& form = context_parallel::form_of(config);
  if (!form.shares_heads) return;
  const models::Model model = models::Workload(workload_options(config)).make_meta_model();
  for (const auto& layer : model.layers) {
    const std::int64_t heads = layer->attention_size().heads.count();
    const int tensor_ranks = placement.tensor_ranks();
    if (heads % (ranks * tensor_ranks) == 0) continue;
    throw std::invalid_argument(fmt::format(
        "--context-exchange {}: the {} heads of {} cannot be split evenly over {} ranks; use ring "
        "or gather, or a number of ranks that divides them",
        form.name, heads, config.model, ranks * tensor_ranks));
  }
}

/// Refuses a row whose copies of layers cannot be cut into groups over which state is sharded.
void check_sharding(const Config& config, const Placement& placement) {
  if (sharded_state(config) == "none") return;
  const int replicas = placement.replicas();
  if (replicas * placement.context_ranks() == 1) {
    throw std::invalid_argument(
        fmt::format("--mesh data=1: {} has no replicas to shard its {} over; give it more, or "
                    "train with single",
                    config.strategy, sharded_state(config)));
  }
  const std::int64_t copies = config.replicas_of_shards;
  if (copies == replicas * placement.context_ranks()) {
    throw std::invalid_argument(fmt::format(
        "--replicas-of-shards {}: with {} replicas nothing is sharded; give fewer, or use ddp",
        copies, replicas * placement.context_ranks()));
  }
  if (replicas % copies == 0) return;
  std::vector<int> possible;
  for (int each = 1; each < replicas * placement.context_ranks(); ++each) {
    if (replicas % each == 0) possible.push_back(each);
  }
  throw std::invalid_argument(
      fmt::format("--replicas-of-shards {}: {} replicas cannot be split into that many groups; "
                  "possible: {}",
                  copies, replicas, fmt::join(possible, ", ")));
}

/// Requires two values of each channel for a normalisation.
void check_batch_norm(const Config& config, const models::Workload& workload) {
  if (!workload.entry().has_batch_norm || fewest_positions(workload) > 1) return;
  for (const schedules::Slice& slice : slices_of(config)) {
    if (slice.count != 1) continue;
    throw std::invalid_argument(
        fmt::format("--global-batch-size {}: replica {} has a micro-batch of 1 sample, too few for "
                    "the BatchNorm of {}; use a larger batch or split{}",
                    config.global_batch_size, slice.replica, config.model,
                    workload.image_size() > 0 ? ", or larger images" : ""));
  }
}

/// Returns a note if one process's replicas have unequal GPUs; CPU devices have equal cores.
std::string note_of_devices(const Config& config, int devices) {
  if (config.device != "cuda" || !strategies::find_strategy(config.strategy).one_process) return "";
  std::vector<backends::DeviceCapacity> capacities;
  for (int index = 0; index < devices; ++index) {
    const auto place = static_cast<std::size_t>(index);
    capacities.push_back(backends::cuda_capacity(
        config.device_ids.empty() ? index : static_cast<int>(config.device_ids.at(place))));
  }
  return data_parallel::imbalance_of(capacities);
}

/// Returns a note if the row's arithmetic is not that of PyTorch's defaults.
std::string note_of_numerics(const Config& config) {
  return tf32_note(config, models::find_model(config.model).input_kind == models::InputKind::image);
}

/// Refuses a row if one device's even share, of parameters or inputs, exceeds the memory.
void require_memory_of_row(const Placement& placement, const models::Workload& workload,
                           const models::Model& model) {
  double parameters = 0;
  for (const auto& each : models::parameters(model.layers)) {
    parameters +=
        static_cast<double>(each.tensor.numel()) * static_cast<double>(each.tensor.itemsize());
  }
  double inputs = sizeof(float) * static_cast<double>(workload.options().batch);
  for (const std::int64_t size : workload.input_shape(1)) inputs *= static_cast<double>(size);
  runtime::require_memory(parameters / placement.devices(), "--model " + workload.entry().name);
  runtime::require_memory(inputs / placement.replicas(),
                          fmt::format("--global-batch-size {}", workload.options().batch));
}

/// Refuses what the layers of a model's file cannot do: mixed precision, and a schedule that splits
/// the backward pass.
void check_layers_of_a_file(const Config& config) {
  if (!models::find_model(config.model).fixed_size) return;
  if (config.mixed_precision != "none") {
    throw std::invalid_argument(fmt::format(
        "--mixed-precision {}: layers of {} compute in the format of their parameters; use --dtype",
        config.mixed_precision, config.model));
  }
  const auto splits = [&](const std::string& name) { return splits_backward(config, name); };
  if (!splits(config.schedule)) return;
  std::vector<std::string> whole = schedules::schedule_names();
  std::erase_if(whole, splits);
  throw std::invalid_argument(
      fmt::format("--schedule {}: it splits the backward pass, which layers of {} cannot; use {}",
                  config.schedule, config.model, fmt::join(whole, ", ")));
}

/// Refuses recomputation that would repeat nothing: selective without attention, full if each
/// backward pass of the row follows its own forward pass.
void check_recomputation(const Config& config, const models::Model& model, int devices) {
  if (config.recompute == "none") return;
  if (config.recompute == "selective") {
    const models::Workload workload(workload_options(config));
    if (models::flops(model.layers, workload.input_shape(1), false).remade > 0) return;
    throw std::invalid_argument(
        fmt::format("--recompute selective: {} has no block with attention; choose full or none",
                    config.model));
  }
  const auto groups = stages::groups_of(model.layers, plan_request(config), /*width=*/1);
  const auto segments = data_parallel::segments_of(model.layers, config, devices, /*width=*/1);
  const strategies::ModelParts parts{
      .groups_of_stage = groups.per_stage,
      .empty_groups = groups.empty,
      .kept_groups = is_data_parallel(config) ? segments.kept : groups.kept,
      .owners = segments.owners};
  if (!schedules::recomputed_passes(plan_of(config, parts).schedule).empty()) return;
  throw std::invalid_argument(
      fmt::format("--recompute {}: {} of {} has nothing to recompute, because each backward pass "
                  "follows its own forward pass; leave it out, or use more micro-batches, or "
                  "smaller groups (--bucket-mb, --shard-group-mb), or other --recompute-layers",
                  config.recompute, config.strategy, config.model));
}

/// Throws if the row cannot work.
CheckedRow checked_row(Config config, bool ranks_are_here, const TaskContext& context) {
  const Placement placement = placement_of(config);
  check_communication(config, placement.ranks);
  check_devices(config, placement, ranks_are_here);
  slices_of(config);
  straggler_of(config, placement.ranks);
  schedules::pass_times_in(config.pass_times);
  check_positions(config, placement);
  check_sharing(config, placement);
  check_sequence(config);
  if (config.mixed_precision != "none" && config.dtype != "float32") {
    throw std::invalid_argument(fmt::format(
        "--dtype {}: --mixed-precision {} keeps its parameters in float32; leave one of them out",
        config.dtype, config.mixed_precision));
  }
  check_sharding(config, placement);
  check_layers_of_a_file(config);
  const auto& strategy = strategies::find_strategy(config.strategy);
  if (strategy.check) strategy.check(config, placement.devices());
  const models::Workload workload(workload_options(config));
  const models::Model model = workload.make_meta_model();
  models::output_shape(model.layers, workload.input_shape(1));
  require_memory_of_row(placement, workload, model);
  check_batch_norm(config, workload);
  schedules::find_schedule(config.schedule);
  config.cut = cut_of(config, workload, model, context);
  // Refuses a file of another size.
  if (config.schedule.starts_with(schedules::order_prefix)) plan_of(config);
  check_recomputation(config, model, placement.devices());
  const int stages = stages_of(config);
  std::vector<std::string> notes = {note_of_devices(config, placement.devices()),
                                    note_of_numerics(config),
                                    note_of_sharing(config, placement.tensor_ranks())};
  std::erase(notes, "");
  return {.error = {},
          .config = std::move(config),
          .stages = stages,
          .note = fmt::format("{}", fmt::join(notes, "; "))};
}

}  // namespace

CheckResult check(const CheckJob& job, const TaskContext& context) {
  CheckResult result;
  for (const Config& config : job.configs) {
    try {
      result.rows.push_back(checked_row(config, job.ranks_are_here, context));
    } catch (const std::exception& error) {
      result.rows.push_back({.error = error.what()});
    }
  }
  return result;
}

}  // namespace stratagem::bench
