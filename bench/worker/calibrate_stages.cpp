// calibrate_stages: finds the cost of each action of a row. Every stage loops its actions on its
// own device, all devices at the same time and without handing anything to another, so that the
// costs contain what the devices take from each other (memory bandwidth, caches) but no bubble.
// Then each has the machine for itself, as in a schedule's bubbles. Stages take turns at that, a
// step each, because a device that waited finds less of its data in the caches. If a row's ranks
// have GPUs elsewhere, stages take turns on those that are here.
#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "bench/predict/predict.h"
#include "bench/timing/waves.h"
#include "bench/worker/calibrate_sharded.h"
#include "bench/worker/session.h"
#include "bench/worker/stage_loop.h"
#include "strategies/data_parallel/layer_buckets.h"
#include "strategies/stages/partition.h"

namespace stratagem::bench {
namespace {

constexpr int fewest_alone = 3;  // steps of each stage, however long they take

/// Returns the row with fewer micro-batches, all of `samples` samples: enough of them that each
/// device has as many in flight as in the row, or two if it has all of them at once.
Config shorter(const Config& row, std::int64_t samples, int micro_batches) {
  const Placement placement = placement_of(row);
  Config config = row;
  const std::int64_t count =
      std::min<std::int64_t>(micro_batches, 2 * placement.pipeline_devices());
  config.global_batch_size = samples * count * placement.replicas();
  config.split_size = samples;
  if (row.accumulation_steps > 1) config.accumulation_steps = count;
  return config;
}

/// Returns the passes of a stage, in the schedule's order.
std::vector<schedules::Action> passes_of(const schedules::Schedule& schedule, int stage) {
  std::vector<schedules::Action> passes;
  const auto device =
      static_cast<std::size_t>(schedule.device_of_stage.at(static_cast<std::size_t>(stage)));
  for (const schedules::Action& action : schedule.actions.at(device)) {
    if (action.stage == stage && schedules::is_pass(action.kind)) passes.push_back(action);
  }
  return passes;
}

class StageCalibration {
 public:
  StageCalibration(const Config& config, const TaskContext& context)
      : config_(config),
        effort_(context.calibration),
        placement_(placement_of(config)),
        workload_(workload_options(config)),
        group_(open_devices(config, placement_, context)) {}

  std::vector<ActionCost> run() {
    const auto sizes = micro_batch_sizes(config_);
    std::vector<ActionCost> costs = measure(sizes.front(), static_cast<int>(sizes.size()));
    if (sizes.back() != sizes.front()) {
      for (const auto& cost : measure(sizes.back(), static_cast<int>(sizes.size()))) {
        if (cost.samples != 0) costs.push_back(cost);
      }
    }
    return costs;
  }

 private:
  std::vector<ActionCost> measure(std::int64_t samples, int micro_batches) {
    if (is_data_parallel(config_)) {
      add_loops_of_replicas_in_one_process(samples);
    } else {
      for (std::size_t replica = 0; replica < replicas_here(); ++replica) {
        add_loops_of_a_replica(replica, samples, micro_batches);
      }
    }
    // Interleaved stages take turns, too.
    for (const auto& wave : waves_of(device_of_loop_)) {
      const auto together =
          std::make_shared<MeasurementBarrier>(wave.size(), to_milliseconds(config_.timeout));
      for (const std::size_t index : wave) {
        loops_[index]->enqueue(together, effort_.busy);
      }
      runtime::synchronize_all(group_.devices, to_milliseconds(config_.timeout));
    }
    std::vector<ActionCost> costs;
    // The replicas are alike; in one process a stage has one loop for each.
    const std::size_t replicas = is_data_parallel(config_) ? group_.devices.size() : 1;
    const std::size_t stages = is_data_parallel(config_)
                                   ? loops_.size() / replicas
                                   : static_cast<std::size_t>(stages_of(config_));
    const auto end = effort_.now() + stages * effort_.alone;
    for (int step = 0; step <= fewest_alone || effort_.now() < end; ++step) {
      for (std::size_t stage = 0; stage < stages; ++stage) {
        loops_[stage * replicas]->enqueue_alone(/*keep=*/step > 0);
        runtime::synchronize_all(group_.devices, to_milliseconds(config_.timeout));
      }
    }
    for (std::size_t stage = 0; stage < stages; ++stage) {
      loops_[stage * replicas]->add_costs(static_cast<int>(stage), costs);
    }
    loops_.clear();
    device_of_loop_.clear();
    return costs;
  }

  /// Returns the number of the row's replicas with devices here, or 1, whose stages take turns.
  std::size_t replicas_here() const {
    const std::size_t fitting =
        group_.devices.size() / static_cast<std::size_t>(placement_.pipeline_devices());
    return std::clamp(fitting, std::size_t{1}, static_cast<std::size_t>(placement_.replicas()));
  }

  /// Adds a wave for each segment, and one for the loss of the whole batch, on every device.
  void add_loops_of_replicas_in_one_process(std::int64_t samples) {
    const bool loss_apart = config_.loss_on != "replicas";
    for (std::size_t replica = 0; replica < group_.devices.size(); ++replica) {
      models::Model model = workload_.make_meta_model();
      const auto cut = data_parallel::segments_of(
          model.layers, config_, static_cast<int>(group_.devices.size()), /*width=*/1);
      kept_ = cut.kept;
      auto parts = models::cut(std::move(model.layers), cut.boundaries);
      models::Shape shape = workload_.input_shape(samples);
      loops_.resize((parts.size() + (loss_apart ? 1 : 0)) * group_.devices.size());
      device_of_loop_.resize(loops_.size());
      for (std::size_t segment = 0; segment < parts.size(); ++segment) {
        const bool last = !loss_apart && segment + 1 == parts.size();
        const models::Shape output = models::output_shape(parts[segment], shape);
        add_loop(segment, replica, std::move(parts[segment]), {segment == 0, last}, shape, samples);
        shape = output;
      }
      shape.front() = config_.global_batch_size;
      if (loss_apart) {
        add_loop(parts.size(), replica, {}, {false, true}, shape, config_.global_batch_size);
      }
    }
  }

  void add_loop(std::size_t segment, std::size_t replica, models::LayerList layers,
                stages::Stage::Position position, const models::Shape& shape,
                std::int64_t samples) {
    runtime::Device& device = *group_.devices[replica];
    std::vector<schedules::Action> passes = {{schedules::ActionKind::forward},
                                             {schedules::ActionKind::backward}};
    if (config_.recompute == "full" && !position.last &&
        !kept_.contains(static_cast<int>(segment))) {
      passes.insert(passes.begin() + 1, {schedules::ActionKind::recompute});
    }
    const std::size_t index = segment * group_.devices.size() + replica;
    device_of_loop_[index] = replica;
    device.enqueue(runtime::Stream::compute, "set-up", [&, index] {
      auto& loop = loops_[index];
      auto stage = std::make_unique<stages::Stage>(workload_, std::move(layers), position,
                                                   device.description(), 1);
      stage->remade_inputs = stages::remade_by(config_);
      loop = std::make_unique<StageLoop>(workload_, device, std::move(stage), position, shape,
                                         samples, passes, effort_.now);
      loop->exchange_with_a_replica();
    });
    device.synchronize(to_milliseconds(config_.timeout));
  }

  void add_loops_of_a_replica(std::size_t replica, std::int64_t samples, int micro_batches) {
    const std::size_t first = loops_.size();
    models::Model model = workload_.make_meta_model();
    auto parts =
        models::cut(std::move(model.layers), stages::boundaries_of(model.layers, config_.cut));
    loops_.resize(first + parts.size());
    models::Shape shape = workload_.input_shape(samples);
    const schedules::Schedule schedule =
        plan_of(shorter(config_, samples, micro_batches)).of_stages;
    const std::size_t first_device =
        replica * static_cast<std::size_t>(placement_.pipeline_devices());
    for (std::size_t index = 0; index < parts.size(); ++index) {
      const std::size_t number =
          (first_device + static_cast<std::size_t>(schedule.device_of_stage.at(index))) %
          group_.devices.size();
      device_of_loop_.push_back(number);
      runtime::Device& device = *group_.devices[number];
      const stages::Stage::Position position{index == 0, index + 1 == parts.size()};
      const models::Shape output = models::output_shape(parts[index], shape);
      device.enqueue(runtime::Stream::compute, "set-up", [&, this, index, position, shape] {
        auto stage = std::make_unique<stages::Stage>(workload_, std::move(parts[index]), position,
                                                     device.description(), 1);
        stage->split_backward = schedule.split_backward;
        stage->remade_inputs = stages::remade_by(config_);
        loops_[first + index] = std::make_unique<StageLoop>(
            workload_, device, std::move(stage), position, shape, samples,
            passes_of(schedule, static_cast<int>(index)), effort_.now);
      });
      device.synchronize(to_milliseconds(config_.timeout));
      shape = output;
    }
  }

  Config config_;
  CalibrationEffort effort_;
  Placement placement_;
  models::Workload workload_;
  std::vector<std::unique_ptr<StageLoop>> loops_;  // outlives the threads that run them
  std::vector<std::size_t> device_of_loop_;
  std::set<int> kept_;  // segments that full recomputation leaves out
  backends::DeviceGroup group_;
};

data_parallel::Segments segments_of(const Config& config, const models::Model& model) {
  return data_parallel::segments_of(model.layers, config, placement_of(config).devices(),
                                    /*width=*/1);
}

}  // namespace

CalibrateStagesResult calibrate_stages(const CalibrateStagesJob& job, const TaskContext& context) {
  if (has_layer_groups(job.config)) return calibrate_sharded(job.config, context);
  CalibrateStagesResult result{.costs = StageCalibration(job.config, context).run()};
  const models::Model model = models::Workload(workload_options(job.config)).make_meta_model();
  result.has_buffers = !models::buffers(model.layers).empty();
  if (is_data_parallel(job.config)) {
    const auto segments = segments_of(job.config, model);
    result.owners = {segments.owners.begin(), segments.owners.end()};
    result.kept_groups = {segments.kept.begin(), segments.kept.end()};
  } else {
    const auto sizes = micro_batch_sizes(job.config);
    const bool is_even = sizes.front() == sizes.back();
    result.memory = calibrate_memory(
        is_even ? shorter(job.config, sizes.front(), static_cast<int>(sizes.size())) : job.config,
        context);
  }
  return result;
}

}  // namespace stratagem::bench
