#include "bench/worker/session.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "bench/config/core_demand.h"
#include "bench/config/plugins.h"
#include "bench/machine/machine.h"
#include "models/loss_scale.h"
#include "strategies/backends/memory_costs.h"
#include "strategies/context_parallel/attention_form.h"
#include "strategies/distributed/same_calls.h"
#include "strategies/runtime/parse.h"

namespace stratagem::bench {
namespace {

double loss_scale_of(const std::string& text) {
  if (text == "dynamic") return models::LossScale::highest_at_start;
  if (text == "none") return 1;
  const auto value = runtime::number_in<double>(text);
  if (value && *value >= 1) return *value;
  throw std::invalid_argument(
      fmt::format("--loss-scale {}: expected dynamic, none, or a number from 1 on", text));
}

models::OptimizerOptions optimizer_options(const Config& config) {
  using Kind = models::OptimizerOptions::Kind;
  models::OptimizerOptions options;
  options.kind = config.optimizer.pick(Kind::sgd, Kind::adam, Kind::adamw);
  options.learning_rate = config.learning_rate;
  options.momentum = config.momentum;
  options.weight_decay = config.weight_decay;
  options.clip_norm = config.clip_gradients;
  return options;
}

/// The job's devices that this process drives.
struct OwnDevices {
  std::int64_t first = 0;  // number in the job
  std::int64_t count = 1;
};

OwnDevices own_devices(const Placement& placement, const TaskContext& context) {
  const std::int64_t each = placement.devices_per_rank();
  if (context.ranks == nullptr) return {0, placement.devices()};
  return {context.ranks->info().rank * each, each};
}

void set_numerics(const Config& config) {
  at::globalContext().setBenchmarkCuDNN(config.cudnn_benchmark);
  at::globalContext().setAllowTF32CuBLAS(config.tf32);
  at::globalContext().setAllowTF32CuDNN(config.tf32);
}

/// The cores that this rank may use, and the number of the host's ranks before it that use the same
/// ones. A launcher may have pinned every rank to cores of its own.
struct CoreShare {
  std::vector<int> cores;
  std::int64_t ranks_before = 0;
};

CoreShare core_share(const TaskContext& context) {
  CoreShare share{available_cores(), 0};
  if (context.ranks == nullptr) return share;
  const auto all = all_gather_json(context, {{"host", host_name()}, {"cores", share.cores}});
  const auto own = static_cast<std::size_t>(context.ranks->info().rank);
  for (std::size_t rank = 0; rank < own; ++rank) {
    if (all[rank] == all[own]) ++share.ranks_before;
  }
  return share;
}

std::vector<std::vector<int>> cores_by_device(const Config& config, const OwnDevices& own,
                                              const TaskContext& context) {
  const CoreShare share = core_share(context);
  const std::int64_t first = share.ranks_before * own.count;
  require_cores(config, share.cores.size(), first + own.count);
  std::vector<std::vector<int>> cores;
  for (std::int64_t device = 0; device < own.count; ++device) {
    cores.push_back(cores_of_device(config, share.cores, own.first + device, first + device));
  }
  return cores;
}

/// Returns the GPU of each of this rank's devices. Collective.
std::vector<int> own_gpus(const Config& config, const Placement& placement,
                          const TaskContext& context) {
  const ranks::VisibleGpus own = visible_gpus();
  if (context.ranks == nullptr) {
    // Other ranks' GPUs may be elsewhere: work that replaces theirs takes only the GPUs here.
    std::int64_t count = placement.devices();
    if (placement.ranks > 1 && config.device_ids.empty()) {
      count = std::clamp(std::ssize(own.identities), std::ptrdiff_t{1}, std::ptrdiff_t{count});
    }
    return ranks::assign_gpus({own}, count, config.device_ids).front();
  }
  std::vector<ranks::VisibleGpus> all;
  for (const nlohmann::json& rank :
       all_gather_json(context, {{"host", own.host}, {"gpus", own.identities}})) {
    all.push_back(
        {rank.at("host").get<std::string>(), rank.at("gpus").get<std::vector<std::string>>()});
  }
  const auto assigned = ranks::assign_gpus(all, placement.devices_per_rank(), config.device_ids);
  if (backend_of(config) == "nccl") ranks::require_gpus_of_their_own(all, assigned);
  return assigned.at(static_cast<std::size_t>(context.ranks->info().rank));
}

/// Returns whether devices of a host share cores: this rank's, or with those of ranks before it.
/// Collective.
bool is_oversubscribed(const Config& config, const Placement& placement,
                       const TaskContext& context) {
  if (config.device != "cpu" || !config.device_ids.empty()) return false;
  const CoreShare share = core_share(context);
  const std::int64_t devices = (share.ranks_before + 1) * own_devices(placement, context).count;
  const bool own =
      devices * config.cores_per_device > static_cast<std::int64_t>(share.cores.size());
  bool any = false;
  for (const nlohmann::json& rank : all_gather_json(context, own)) any = any || rank.get<bool>();
  return any;
}

}  // namespace

models::WorkloadOptions workload_options(const Config& config) {
  models::WorkloadOptions options;
  options.model = config.model;
  options.batch = config.global_batch_size;
  options.image_size = config.image_size;
  options.sequence_length = config.sequence_length;
  options.tokens = config.data.pick(models::TokenSource::random, models::TokenSource::text);
  options.dtype = compute_format(config).pick(at::kFloat, at::kBFloat16, at::kHalf, at::kDouble);
  options.mixed = config.mixed_precision != "none";
  // Also holds for its verification in float64.
  if (config.mixed_precision == "float16") {
    options.dynamic_loss_scale = config.loss_scale == "dynamic";
    options.loss_scale = loss_scale_of(config.loss_scale);
    options.loss_scale_hysteresis = config.loss_scale_hysteresis;
  }
  options.format =
      config.memory_format.pick(at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous);
  options.loss = config.loss.pick(models::Loss::mse, models::Loss::cross_entropy);
  options.optimizer = optimizer_options(config);
  options.seed = static_cast<std::uint64_t>(config.seed);
  options.classes = config.outputs;
  options.features = config.features;
  options.bias = config.bias;
  options.dropout = config.dropout;
  options.targets = config.targets.pick(models::Targets::classes, models::Targets::real);
  return options;
}

ranks::VisibleGpus visible_gpus() {
  return {.host = host_name(), .identities = backends::cuda_identities()};
}

backends::DeviceGroupOptions device_options(const Config& config, const Placement& placement,
                                            const TaskContext& context) {
  backends::DeviceGroupOptions options;
  options.activity = context.activity;
  options.on_overrun = context.on_overrun;
  if (config.device == "cuda") {
    options.kind = runtime::DeviceKind::cuda;
    options.ordinals = own_gpus(config, placement, context);
  } else {
    options.cores = cores_by_device(config, own_devices(placement, context), context);
    options.reference_kernels = config.kernels == "reference";
  }
  return options;
}

backends::DeviceGroup open_devices(const Config& config, const Placement& placement,
                                   const TaskContext& context) {
  set_numerics(config);
  return backends::make_device_group(device_options(config, placement, context));
}

Session::Session(const Config& row, const models::WorkloadOptions& options,
                 const TaskContext& context, ActionHook fault)
    : config(row),
      placement(placement_of(row)),
      workload(std::make_unique<models::Workload>(options)),
      group(open_devices(row, placement, context)),
      oversubscribed(is_oversubscribed(row, placement, context)),
      groups(row, placement, context, group.devices),
      before_action(std::move(fault)),
      strategy(make_strategy()) {
  if (context.ranks == nullptr) return;
  distributed::require_same_calls(*context.ranks, costs_of_a_step(*this).calls);
}

std::unique_ptr<strategies::Strategy> Session::make_strategy() const {
  require_plugins(config.plugin);
  return strategies::find_strategy(config.strategy)
      .make({.workload = *workload,
             .devices = group.devices,
             .options = config,
             .groups = groups.view(),
             .timeout = to_milliseconds(config.timeout),
             .before_action = before_action});
}

strategies::CommunicationCounts Session::counts() const {
  strategies::CommunicationCounts all = groups.counts();
  add(all, strategy->take_counts());
  return all;
}

void Session::reset_counts() const {
  groups.reset_counts();
  strategy->take_counts();
}

strategies::Costs costs_of_a_step(const Session& session) {
  return session.strategy->costs(session.workload->options().batch);
}

std::int64_t elements_of(const models::Workload& workload) {
  std::int64_t elements = 1;
  for (const std::int64_t size : workload.input_shape(workload.options().batch)) elements *= size;
  return elements;
}

std::string wrong_memory(const Session& session) {
  return backends::difference_from_costs(session.group.devices, costs_of_a_step(session).memory);
}

std::vector<nlohmann::json> all_gather_json(const TaskContext& context, const nlohmann::json& own) {
  if (context.ranks == nullptr) return {own};
  std::vector<nlohmann::json> all;
  for (const std::string& text : context.ranks->all_gather(own.dump())) {
    all.push_back(nlohmann::json::parse(text));
  }
  return all;
}

std::int64_t fewest_positions(const models::Workload& workload) {
  const models::Model model = workload.make_meta_model();
  models::Shape shape = workload.input_shape(1);
  // Positions of a channel, where there are fewest; a vector has one.
  std::int64_t fewest = shape.size() == 4 ? shape[2] * shape[3] : 1;
  for (const auto& layer : model.layers) {
    shape = layer->output_shape(shape);
    if (shape.size() == 4) fewest = std::min(fewest, shape[2] * shape[3]);
  }
  return fewest;
}

std::int64_t parts_of_a_sequence(const Config& config) {
  const Placement placement = placement_of(config);
  const bool by_sequence = strategies::find_strategy(config.strategy).shares_sequence;
  const std::int64_t tensor_ranks = by_sequence ? placement.tensor_ranks() : 1;
  const int context_ranks = placement.context_ranks();
  if (context_ranks == 1) return tensor_ranks;
  const context_parallel::ContextOrder order = context_parallel::order_of(config);
  return std::lcm(context_parallel::parts_of(order, context_ranks), context_ranks * tensor_ranks);
}

ScopeTraits scope_traits(const Config& config) {
  const models::ModelEntry& entry = models::find_model(config.model);
  const bool can_shrink = !entry.fixed_size;
  return {.has_images = can_shrink && entry.has_images(),
          .has_batch_norm = entry.has_batch_norm,
          .has_tokens = can_shrink && entry.has_tokens(),
          .sequence_degree = parts_of_a_sequence(config),
          .positions =
              entry.fixed_size ? fewest_positions(models::Workload(workload_options(config))) : 0};
}

}  // namespace stratagem::bench
