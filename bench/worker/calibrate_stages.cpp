// calibrate_stages: what each action of a row costs. Every stage loops its actions on its own
// device, all devices at the same time and none handing anything to another, so that the costs
// contain what the devices take from each other (memory bandwidth, caches) but no bubble. Then each
// loops alone, because in a schedule's bubbles a device has the machine for itself.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "bench/predict/predict.h"
#include "bench/timing/measurement_barrier.h"
#include "bench/worker/session.h"
#include "reports/statistics.h"
#include "strategies/data_parallel/replica.h"
#include "strategies/stages/partition.h"
#include "strategies/stages/stage.h"

namespace stratagem::bench {
namespace {

using Clock = std::chrono::steady_clock;
using schedules::ActionKind;

constexpr std::chrono::milliseconds measured_busy{900};
constexpr std::chrono::milliseconds measured_alone{350};
constexpr int longest_cycle = 3;  // micro-batches between two updates
constexpr int fewest_cycles = 2;  // measured, however long they take, and
constexpr int fewest_passes = 3;  // so many micro-batches

using Samples = std::vector<double>;  // of one cost, in milliseconds

/// One stage with everything that its neighbours would hand it.
class StageLoop {
 public:
  StageLoop(const models::Workload& workload, runtime::Device& device,
            std::unique_ptr<stages::Stage> stage, stages::Stage::Position position,
            const models::Shape& input_shape, std::int64_t samples, int cycle)
      : workload_(workload),
        device_(device),
        stage_(std::move(stage)),
        position_(position),
        samples_(samples),
        cycle_(cycle),
        batch_(workload.make_batch(0).slice(0, samples)) {
    const auto options = at::TensorOptions().dtype(workload.options().dtype);
    const models::Shape output_shape = models::output_shape(stage_->layers(), input_shape);
    activation_ =
        in_format(at::randn(input_shape, options)).to(backends::torch_device(device.description()));
    gradient_ = in_format(at::randn(output_shape, options))
                    .to(backends::torch_device(device.description()));
  }

  /// Enqueues cycles for as long as said, in pieces that each have the device's time limit; on a
  /// GPU each action is waited for. Pieces that a failed device skips let go of their member.
  void enqueue(const std::shared_ptr<MeasurementBarrier>& together, Clock::duration length,
               bool alone) {
    const auto member = std::make_shared<MeasurementBarrier::Participant>(together);
    enqueue([this, member, alone] {
      alone_ = alone;
      run_cycle(2, false);  // allocates what later cycles use again
      run_cycle(cycle_, false);
      member->warm();
    });
    enqueue([this, member] {
      while (member->others_warm_up()) run_cycle(cycle_, false);
    });
    enqueue([this, member, length] {
      const auto end = Clock::now() + length;
      for (int cycles = 0;
           cycles < fewest_cycles || cycles * cycle_ < fewest_passes || Clock::now() < end;
           ++cycles) {
        run_cycle(cycle_, true);
      }
      member->done();
    });
    enqueue([this, member] {
      while (member->others_measure()) run_cycle(cycle_, false);
    });
  }

  void add_costs(int stage, std::vector<ActionCost>& costs) {
    for (auto& [key, samples] : busy_samples_) {
      const auto& [kind, first] = key;
      const std::int64_t count = kind == ActionKind::optimizer ? 0 : samples_;
      costs.push_back(
          {.kind = std::string(schedules::name(kind)),
           .stage = stage,
           .samples = count,
           .first = first,
           .ms = reports::median(samples),
           .alone_ms = reports::median(alone_samples_.at(key)),
           .spread_ms = reports::percentile(samples, 0.75) - reports::percentile(samples, 0.25)});
    }
  }

 private:
  at::Tensor in_format(const at::Tensor& tensor) const {
    return tensor.dim() == 4 ? tensor.contiguous(workload_.options().format) : tensor;
  }

  void enqueue(std::function<void()> piece) {
    device_.enqueue(runtime::Stream::compute, "calibrate", std::move(piece));
  }

  void time(ActionKind kind, bool first, bool keep, const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    if (activation_.is_cuda()) at::zeros({1}, activation_.options()).item();  // waits
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    if (keep) (alone_ ? alone_samples_ : busy_samples_)[{kind, first}].push_back(took.count());
  }

  void run_cycle(int micro_batches, bool keep) {
    const double weight = 1.0 / micro_batches;
    for (int index = 0; index < micro_batches; ++index) {
      if (position_.first || position_.last) {
        time(ActionKind::copy_input, false, keep,
             [&] { stage_->load_input(0, batch_.inputs, batch_.targets); });
      }
      if (!position_.first) {
        time(ActionKind::copy_activation, false, keep,
             [&] { stage_->receive_activation(0, activation_); });
      }
      time(ActionKind::forward, false, keep, [&] { stage_->forward(0, weight); });
      if (!position_.last) {
        time(ActionKind::copy_gradient, false, keep,
             [&] { stage_->receive_gradient(0, gradient_); });
      }
      if (!stage_->split_backward) {
        time(ActionKind::backward, index == 0, keep, [&] { stage_->backward(0); });
        continue;
      }
      time(ActionKind::backward_input, false, keep, [&] { stage_->backward(0); });
      time(ActionKind::backward_weight, index == 0, keep, [&] { stage_->backward_weight(0); });
    }
    time(ActionKind::optimizer, false, keep, [&] {
      if (workload_.options().optimizer.clip_norm == 0) return stage_->update();
      stage_->update(stage_->squared_gradient_norm().item<double>());
    });
  }

  const models::Workload& workload_;
  runtime::Device& device_;
  std::unique_ptr<stages::Stage> stage_;
  stages::Stage::Position position_;
  std::int64_t samples_;
  int cycle_;
  models::Batch batch_;
  at::Tensor activation_;
  at::Tensor gradient_;
  bool alone_ = false;
  std::map<std::pair<ActionKind, bool>, Samples> busy_samples_;
  std::map<std::pair<ActionKind, bool>, Samples> alone_samples_;
};

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
    for (int replica = 0; replica < placement_.replicas(); ++replica) {
      add_loops_of_a_replica(samples, micro_batches);
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
    const auto stages = static_cast<std::size_t>(stages_of(config_));
    for (std::size_t stage = 0; stage < stages; ++stage) {  // the replicas are alike
      loops_[stage]->enqueue(
          std::make_shared<MeasurementBarrier>(1, to_milliseconds(config_.timeout)), measured_alone,
          true);
      runtime::synchronize_all(group_.devices, to_milliseconds(config_.timeout));
      loops_[stage]->add_costs(static_cast<int>(stage), costs);
    }
    loops_.clear();
    return costs;
  }

  void add_loops_of_a_replica(std::int64_t samples, int micro_batches) {
    const std::size_t first_device = loops_.size();
    models::Model model = workload_.make_model();
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
  for (const auto& bucket : data_parallel::plan_buckets(workload.make_model().layers, input,
                                                        /*first_stage=*/true, config)) {
    buckets.push_back({.bytes = bucket.bytes, .ready = bucket.ready});
  }
  return buckets;
}

}  // namespace

CalibrateStagesResult calibrate_stages(const CalibrateStagesJob& job, const TaskContext& context) {
  CalibrateStagesResult result{.costs = StageCalibration(job.config, context).run(), .buckets = {}};
  if (placement_of(job.config).replicas() > 1) result.buckets = buckets_of(job.config);
  return result;
}

}  // namespace stratagem::bench
