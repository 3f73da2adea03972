// calibrate_stages: what each action of a row costs. Every stage loops its actions on its own
// device, all devices at the same time and none handing anything to another, so that the costs
// contain what the devices take from each other (memory bandwidth, caches) but no bubble. Then each
// loops alone, because in a schedule's bubbles a device has the machine for itself.
#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/predict/predict.h"
#include "bench/worker/session.h"
#include "bench/worker/stage_loop.h"
#include "strategies/data_parallel/layer_buckets.h"
#include "strategies/data_parallel/replica.h"
#include "strategies/stages/partition.h"

namespace stratagem::bench {
namespace {

constexpr std::chrono::milliseconds measured_busy{900};
constexpr std::chrono::milliseconds measured_alone{350};
constexpr int longest_cycle = 3;  // micro-batches between two updates

class StageCalibration {
 public:
  StageCalibration(const Config& config, const TaskContext& context)
      : config_(config),
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
      for (int replica = 0; replica < placement_.replicas(); ++replica) {
        add_loops_of_a_replica(samples, micro_batches);
      }
    }
    // As many at a time as there are devices: interleaved stages take turns.
    const std::size_t devices = group_.devices.size();
    for (std::size_t wave = 0; wave < loops_.size(); wave += devices) {
      const auto together =
          std::make_shared<MeasurementBarrier>(devices, to_milliseconds(config_.timeout));
      for (std::size_t index = wave; index < wave + devices; ++index) {
        loops_[index]->enqueue(together, measured_busy, false);
      }
      runtime::synchronize_all(group_.devices, to_milliseconds(config_.timeout));
    }
    std::vector<ActionCost> costs;
    // The replicas are alike; in one process they stand side by side.
    const std::size_t replicas = is_data_parallel(config_) ? devices : 1;
    const std::size_t stages = is_data_parallel(config_)
                                   ? loops_.size() / devices
                                   : static_cast<std::size_t>(stages_of(config_));
    for (std::size_t stage = 0; stage < stages; ++stage) {
      StageLoop& loop = *loops_[stage * replicas];
      loop.enqueue(std::make_shared<MeasurementBarrier>(1, to_milliseconds(config_.timeout)),
                   measured_alone, true);
      runtime::synchronize_all(group_.devices, to_milliseconds(config_.timeout));
      loop.add_costs(static_cast<int>(stage), costs);
    }
    loops_.clear();
    return costs;
  }

  /// A wave for each segment, and one for the loss of the whole batch, on every device.
  void add_loops_of_replicas_in_one_process(std::int64_t samples) {
    const bool loss_apart = config_.loss_on != "replicas";
    for (std::size_t replica = 0; replica < group_.devices.size(); ++replica) {
      models::Model model = workload_.make_meta_model();
      const auto cut = data_parallel::segments_of(
          model.layers, config_, static_cast<int>(group_.devices.size()), /*width=*/1);
      auto parts = models::cut(std::move(model.layers), cut.boundaries);
      models::Shape shape = workload_.input_shape(samples);
      loops_.resize((parts.size() + (loss_apart ? 1 : 0)) * group_.devices.size());
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
    device.enqueue(runtime::Stream::compute, "set-up", [&] {
      auto& loop = loops_[segment * group_.devices.size() + replica];
      loop = std::make_unique<StageLoop>(
          workload_, device,
          std::make_unique<stages::Stage>(workload_, std::move(layers), position,
                                          device.description(), 1),
          position, shape, samples, /*cycle=*/1);
      loop->exchange_with_a_replica();
    });
    device.synchronize(to_milliseconds(config_.timeout));
  }

  void add_loops_of_a_replica(std::int64_t samples, int micro_batches) {
    const std::size_t first_device = loops_.size();
    models::Model model = workload_.make_meta_model();
    auto parts =
        models::cut(std::move(model.layers), stages::boundaries_of(model.layers, config_.cut));
    loops_.resize(first_device + parts.size());
    models::Shape shape = workload_.input_shape(samples);
    const auto devices = static_cast<std::size_t>(placement_.pipeline_devices());
    for (std::size_t index = 0; index < parts.size(); ++index) {
      runtime::Device& device = *group_.devices[first_device + index % devices];
      const stages::Stage::Position position{index == 0, index + 1 == parts.size()};
      const models::Shape output = models::output_shape(parts[index], shape);
      device.enqueue(runtime::Stream::compute, "set-up", [&, this, index, position, shape] {
        auto stage = std::make_unique<stages::Stage>(workload_, std::move(parts[index]), position,
                                                     device.description(), 1);
        stage->split_backward = schedule_of(config_).split_backward;
        loops_[first_device + index] =
            std::make_unique<StageLoop>(workload_, device, std::move(stage), position, shape,
                                        samples, std::min(micro_batches, longest_cycle));
      });
      device.synchronize(to_milliseconds(config_.timeout));
      shape = output;
    }
  }

  Config config_;
  Placement placement_;
  models::Workload workload_;
  std::vector<std::unique_ptr<StageLoop>> loops_;  // outlives the threads that run them
  backends::DeviceGroup group_;
};

/// What a replica of one stage sends, in order.
std::vector<GradientBucket> buckets_of(const Config& config) {
  const models::Workload workload(workload_options(config));
  std::vector<GradientBucket> buckets;
  const auto input = workload.input_shape(slices_of(config).front().count);
  for (const auto& bucket : data_parallel::plan_buckets(workload.make_meta_model().layers, input,
                                                        /*first_stage=*/true, config)) {
    buckets.push_back({.bytes = bucket.bytes, .ready = bucket.ready});
  }
  return buckets;
}

std::vector<std::int64_t> owners_of_segments(const Config& config) {
  const models::Model model = models::Workload(workload_options(config)).make_meta_model();
  const auto cut =
      data_parallel::segments_of(model.layers, config, placement_of(config).devices(), /*width=*/1);
  return {cut.owners.begin(), cut.owners.end()};
}

}  // namespace

CalibrateStagesResult calibrate_stages(const CalibrateStagesJob& job, const TaskContext& context) {
  CalibrateStagesResult result{.costs = StageCalibration(job.config, context).run()};
  if (is_data_parallel(job.config)) {
    result.owners = owners_of_segments(job.config);
  } else if (placement_of(job.config).replicas() > 1) {
    result.buckets = buckets_of(job.config);
  }
  return result;
}

}  // namespace stratagem::bench
