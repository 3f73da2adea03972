#include "bench/worker/stage_loop.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "reports/statistics.h"
#include "strategies/backends/backend.h"

namespace stratagem::bench {
namespace {

using schedules::ActionKind;

constexpr int fewest_cycles = 2;  // measured, however long they take, and
constexpr int fewest_passes = 3;  // so many micro-batches

}  // namespace

StageLoop::StageLoop(const models::Workload& workload, runtime::Device& device,
                     std::unique_ptr<stages::Stage> stage, stages::Stage::Position position,
                     const models::Shape& input_shape, std::int64_t samples, int cycle, Now now)
    : workload_(workload),
      device_(device),
      stage_(std::move(stage)),
      position_(position),
      samples_(samples),
      cycle_(cycle),
      now_(std::move(now)),
      batch_(workload.make_batch(0).slice(0, samples)) {
  const auto options = at::TensorOptions().dtype(workload.options().dtype);
  const models::Shape output_shape = models::output_shape(stage_->layers(), input_shape);
  activation_ =
      in_format(at::randn(input_shape, options)).to(backends::torch_device(device.description()));
  gradient_ =
      in_format(at::randn(output_shape, options)).to(backends::torch_device(device.description()));
}

void StageLoop::exchange_with_a_replica() {
  const c10::AutoGradMode no_gradient(false);
  for (const auto& parameter : models::parameters(stage_->layers())) {
    replica_.push_back({parameter.tensor, parameter.tensor.detach().clone()});
  }
  for (const auto& buffer : models::buffers(stage_->layers())) {
    replica_.push_back({buffer.tensor, buffer.tensor.clone()});
  }
}

void StageLoop::enqueue(const std::shared_ptr<MeasurementBarrier>& together, Clock::duration length,
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
    const auto end = now_() + length;
    for (int cycles = 0; cycles < fewest_cycles || cycles * cycle_ < fewest_passes || now_() < end;
         ++cycles) {
      run_cycle(cycle_, true);
    }
    member->done();
  });
  enqueue([this, member] {
    while (member->others_measure()) run_cycle(cycle_, false);
  });
}

void StageLoop::add_costs(int stage, std::vector<ActionCost>& costs) {
  for (auto& [key, samples] : busy_samples_) {
    const auto& [kind, first] = key;
    const bool of_parameters = kind == ActionKind::optimizer || kind == ActionKind::replicate ||
                               kind == ActionKind::sum_gradients ||
                               kind == ActionKind::gradient_norm;
    const std::int64_t count = of_parameters ? 0 : samples_;
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

at::Tensor StageLoop::in_format(const at::Tensor& tensor) const {
  return tensor.dim() == 4 ? tensor.contiguous(workload_.options().format) : tensor;
}

void StageLoop::enqueue(std::function<void()> piece) {
  device_.enqueue(runtime::Stream::compute, "calibrate", std::move(piece));
}

void StageLoop::time(ActionKind kind, bool first, bool keep, const std::function<void()>& work) {
  const auto start = now_();
  work();
  if (activation_.is_cuda()) at::zeros({1}, activation_.options()).item();  // waits
  const std::chrono::duration<double, std::milli> took = now_() - start;
  if (keep) (alone_ ? alone_samples_ : busy_samples_)[{kind, first}].push_back(took.count());
}

void StageLoop::run_cycle(int micro_batches, bool keep) {
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
      time(ActionKind::copy_gradient, false, keep, [&] { stage_->receive_gradient(0, gradient_); });
    }
    if (!stage_->split_backward) {
      time(ActionKind::backward, index == 0, keep, [&] { stage_->backward(0); });
      continue;
    }
    time(ActionKind::backward_input, false, keep, [&] { stage_->backward(0); });
    time(ActionKind::backward_weight, index == 0, keep, [&] { stage_->backward_weight(0); });
  }
  if (!replica_.empty()) {
    time(ActionKind::sum_gradients, false, keep, [&] { add_the_replicas_gradients(); });
  }
  if (workload_.options().optimizer.clip_norm == 0) {
    time(ActionKind::optimizer, false, keep, [&] { stage_->update(); });
  } else {
    at::Tensor norm;
    time(ActionKind::gradient_norm, false, keep, [&] { norm = stage_->squared_gradient_norm(); });
    time(ActionKind::optimizer, false, keep, [&] {
      // An update is priced, also where random gradients overflow.
      const auto squared_norm = norm.item<double>();
      stage_->update(std::isfinite(squared_norm) ? squared_norm : 1, 1);
    });
  }
  if (!replica_.empty()) time(ActionKind::replicate, false, keep, [&] { copy_the_replica(); });
}

/// As large as its parameters.
void StageLoop::add_the_replicas_gradients() {
  const c10::AutoGradMode no_gradient(false);
  for (auto& [own, other] : replica_) {
    if (!own.grad().defined()) continue;  // a buffer
    own.mutable_grad().add_(backends::copy_to(other, device_.description()));
  }
}

void StageLoop::copy_the_replica() {
  const c10::AutoGradMode no_gradient(false);
  for (auto& [own, other] : replica_) own.detach().copy_(other, /*non_blocking=*/true);
}

}  // namespace stratagem::bench
