// Calibrates a row whose layers have groups: runs the row's own strategy on the devices of the
// replicas that fit here, each replica without the others. Its transfers are copies, which are not
// counted: predictions take those from the link.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "bench/machine/machine.h"
#include "bench/predict/group_cost_table.h"
#include "bench/predict/predict.h"
#include "bench/worker/absent_ranks.h"
#include "bench/worker/calibrate_sharded.h"
#include "bench/worker/session.h"
#include "strategies/stages/flat_layout.h"
#include "strategies/stages/gradient_sums.h"
#include "strategies/stages/layer_groups.h"

namespace stratagem::bench {
namespace {

using Clock = std::chrono::steady_clock;
using schedules::Action;

constexpr int warm_up_steps = 2;
constexpr int fewest_steps = 3;

using GroupPointer = std::unique_ptr<distributed::ProcessGroup>;

/// Runs the row's strategy on the devices of one replica.
class LonelyReplica {
 public:
  LonelyReplica(const Config& config, const models::Workload& workload, runtime::DeviceSpan devices)
      : devices_(devices), batch_(workload.make_batch(0)) {
    const int replicas = placement_of(config).replicas();
    strategies::RankGroups view{.replica = 0, .replicas = replicas};
    const int copies = static_cast<int>(config.replicas_of_shards);
    for (const auto& device : devices) {
      if (replicas == 1) break;
      const auto without_others = [&](const char* name, int size) {
        groups_.push_back(without_the_others(name, size, backend_of(config), *device));
        return groups_.back().get();
      };
      view.data.push_back(without_others("data", replicas));
      if (copies == 1) continue;
      view.shards.push_back(without_others("shards", replicas / copies));
      view.copies.push_back(without_others("copies", copies));
    }
    if (sharded_state(config) != "none") view.norm = view.data.front();
    strategy_ =
        strategies::find_strategy(config.strategy)
            .make({.workload = workload,
                   .devices = devices,
                   .options = config,
                   .groups = view,
                   .timeout = to_milliseconds(config.timeout),
                   .before_action = [this](const Action& action) { memory_.before(action); }});
    // The data received are not the others', so no parameter may follow them.
    strategy_->set_learning_rate(0);
  }

  void step() { pending_ = strategy_->step(batch_); }
  const schedules::Execution& execution() const { return pending_->execution(); }

  /// Runs one more step. Returns the marks of its devices' memory.
  std::vector<std::vector<MemoryMark>> watched_step(std::chrono::milliseconds limit) {
    memory_.begin(devices_, execution());
    step();
    runtime::synchronize_all(devices_, limit);
    return memory_.end();
  }

 private:
  runtime::DeviceSpan devices_;
  MemoryWatch memory_;
  models::Batch batch_;
  std::vector<GroupPointer> groups_;
  std::unique_ptr<strategies::PendingStep> pending_;
  std::unique_ptr<strategies::Strategy> strategy_;
};

std::vector<LayerGroup> layer_groups(const Config& config, const models::Workload& workload,
                                     const models::Model& model) {
  const stages::GradientSums sums{.sharded = sharded_state(config),
                                  .mixed = workload.options().mixed,
                                  .in_master = strategies::reduces_in_float32(config),
                                  .exchanged = scatters_by_exchange(config)};
  const int copies = copies_of(config);
  const int shards = placement_of(config).replicas() / copies;
  const auto element = static_cast<std::int64_t>(c10::elementSize(workload.options().dtype));
  const auto master = static_cast<std::int64_t>(c10::elementSize(workload.master_dtype()));
  const std::int64_t summed = config.compression == "fp16"      ? sizeof(c10::Half)
                              : (sums.mixed && !sums.in_master) ? element
                                                                : master;
  const auto micro_batches =
      std::ranges::count(partition_of(config), 0, &schedules::Slice::replica);
  const std::int64_t in_whole = sums.master_is_scattered(micro_batches) ? master : element;
  const auto cut = stages::groups_of(model.layers, plan_request(config), workload.options().width);
  std::vector<LayerGroup> groups;
  std::size_t begin = 0;
  for (std::size_t stage = 0; stage < cut.per_stage.size(); ++stage) {
    for (int index = 0; index < cut.per_stage[stage]; ++index) {
      const std::size_t end = groups.size() < cut.boundaries.size() ? cut.boundaries[groups.size()]
                                                                    : model.layers.size();
      const auto layers = models::LayerSpan(model.layers).subspan(begin, end - begin);
      std::vector<std::int64_t> sizes;
      for (const auto& [name, tensor] : models::parameters(layers)) sizes.push_back(tensor.numel());
      const std::int64_t size = stages::FlatLayout(sizes, element, shards).size();
      groups.push_back({.stage = static_cast<std::int64_t>(stage),
                        .gathered_bytes = size * element,
                        .scattered_bytes = sums.is_sharded() ? size * in_whole : 0,
                        .summed_bytes = copies > 1 ? size / shards * summed : 0});
      begin = end;
    }
  }
  return groups;
}

/// Returns the row's plan, with all of a replica's devices in this process.
strategies::StepPlan plan_of_one_process(const Config& config,
                                         const CalibrateStagesResult& calibration) {
  strategies::PlanRequest request =
      plan_request(config, parts_of({.groups = calibration.groups,
                                     .has_buffers = calibration.has_buffers,
                                     .kept_groups = calibration.kept_groups}));
  request.arrangement.ranks = 1;
  return strategies::plan_of(request, outline_of(config));
}

/// Counts the replicas with devices and cores here. Throws std::invalid_argument for none.
std::size_t replicas_here(const Config& config, std::size_t devices) {
  const auto each = static_cast<std::size_t>(placement_of(config).pipeline_devices());
  std::size_t fitting = devices / each;
  if (config.device == "cpu") {
    const std::size_t cores = each * static_cast<std::size_t>(config.cores_per_device);
    fitting = std::min(fitting, available_cores().size() / cores);
  }
  if (fitting > 0) return fitting;
  throw std::invalid_argument(
      fmt::format("a replica's {} devices are not all here, or share cores", each));
}

/// A fixed scale costs the same as any other, and does not overflow.
Config with_fixed_scale(Config row) {
  if (scales_loss(row)) row.loss_scale = std::string("2");
  return row;
}

/// Runs one more step. Returns what its actions do to the memory.
StepMemory memory_of(LonelyReplica& replica, GroupCostTable& table,
                     std::chrono::milliseconds limit) {
  StepMemory memory;
  for (const std::vector<MemoryMark>& marks : replica.watched_step(limit)) {
    memory.resting.push_back(marks.front().held);
    table.add(marks);
  }
  memory.actions = table.memory();
  return memory;
}

}  // namespace

StepMemory calibrate_memory(const Config& row, const TaskContext& context) {
  const Config config = with_fixed_scale(row);
  const Placement placement = placement_of(config);
  const models::Workload workload(workload_options(config));
  const auto limit = to_milliseconds(config.timeout);
  const strategies::StepPlan plan = plan_of_one_process(config, {});
  const backends::DeviceGroup group = open_devices(config, placement, context);
  const auto each = static_cast<std::size_t>(placement.pipeline_devices());
  LonelyReplica replica(config, workload, runtime::DeviceSpan(group.devices).subspan(0, each));
  for (int index = 0; index < warm_up_steps; ++index) replica.step();
  runtime::synchronize_all(group.devices, limit);
  GroupCostTable table(GroupCostKeys(plan.schedule, samples_of(plan)));
  return memory_of(replica, table, limit);
}

CalibrateStagesResult calibrate_sharded(const Config& row, const TaskContext& context) {
  const Config config = with_fixed_scale(row);
  const Placement placement = placement_of(config);
  const models::Workload workload(workload_options(config));
  const auto limit = to_milliseconds(config.timeout);
  CalibrateStagesResult result;
  {
    const models::Model model = workload.make_meta_model();
    result.groups = layer_groups(config, workload, model);
    result.has_buffers = !models::buffers(model.layers).empty();
    const auto cut =
        stages::groups_of(model.layers, plan_request(config), workload.options().width);
    result.kept_groups = {cut.kept.begin(), cut.kept.end()};
  }
  const strategies::StepPlan plan = plan_of_one_process(config, result);

  const backends::DeviceGroup group = open_devices(config, placement, context);
  const auto each = static_cast<std::size_t>(placement.pipeline_devices());
  const runtime::DeviceSpan devices(group.devices);
  std::vector<std::unique_ptr<LonelyReplica>> replicas;
  for (std::size_t index = 0; index < replicas_here(config, group.devices.size()); ++index) {
    replicas.push_back(
        std::make_unique<LonelyReplica>(config, workload, devices.subspan(index * each, each)));
  }
  const auto step = [&] {
    for (const auto& replica : replicas) replica->step();
    runtime::synchronize_all(group.devices, limit);
  };
  for (int index = 0; index < warm_up_steps; ++index) step();
  GroupCostTable table(GroupCostKeys(plan.schedule, samples_of(plan)));
  const auto end = Clock::now() + context.calibration.groups;
  for (int steps = 0; steps < fewest_steps || Clock::now() < end; ++steps) {
    step();
    for (const auto& replica : replicas) table.add(replica->execution());
  }
  result.memory = memory_of(*replicas.front(), table, limit);
  result.costs = table.costs();
  return result;
}

}  // namespace stratagem::bench
