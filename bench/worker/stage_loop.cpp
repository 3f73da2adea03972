#include "bench/worker/stage_loop.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "strategies/backends/backend.h"

namespace stratagem::bench {
namespace {

using schedules::ActionKind;

constexpr int fewest_steps = 3;  // measured, however long they take

int micro_batches_of(const std::vector<schedules::Action>& passes) {
  int count = 0;
  for (const schedules::Action& pass : passes) count = std::max(count, pass.micro_batch + 1);
  return count;
}

}  // namespace

StageLoop::StageLoop(const models::Workload& workload, runtime::Device& device,
                     std::unique_ptr<stages::Stage> stage, stages::Stage::Position position,
                     const models::Shape& input_shape, std::int64_t samples,
                     std::vector<schedules::Action> passes, Now now)
    : workload_(workload),
      device_(device),
      stage_(std::move(stage)),
      position_(position),
      samples_(samples),
      passes_(std::move(passes)),
      micro_batches_(micro_batches_of(passes_)),
      recomputes_(std::ranges::any_of(
          passes_,
          [](const schedules::Action& pass) { return pass.kind == ActionKind::recompute; })),
      now_(std::move(now)),
      batch_(workload.make_batch(0).slice(0, samples)) {
  stage_->make_room(static_cast<std::size_t>(micro_batches_));
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

void StageLoop::enqueue(const std::shared_ptr<MeasurementBarrier>& together,
                        Clock::duration length) {
  const auto member = std::make_shared<MeasurementBarrier::Participant>(together);
  enqueue([this, member] {
    alone_ = false;
    for (int step = 0; step < 2; ++step) run_step(false);  // allocates what later ones use again
    member->warm();
  });
  enqueue([this, member] {
    while (member->others_warm_up()) run_step(false);
  });
  enqueue([this, member, length] {
    const auto end = now_() + length;
    for (int steps = 0; steps < fewest_steps || now_() < end; ++steps) run_step(true);
    member->done();
  });
  enqueue([this, member] {
    while (member->others_measure()) run_step(false);
  });
}

void StageLoop::enqueue_alone(bool keep) {
  enqueue([this, keep] {
    alone_ = true;
    run_step(keep);
  });
}

void StageLoop::add_costs(int stage, std::vector<ActionCost>& costs) {
  for (auto& [key, samples] : busy_samples_) {
    const auto& [kind, first] = key;
    const bool of_parameters = kind == ActionKind::optimizer || kind == ActionKind::replicate ||
                               kind == ActionKind::sum_gradients ||
                               kind == ActionKind::gradient_norm;
    const std::int64_t count = of_parameters ? 0 : samples_;
    costs.push_back({.kind = std::string(schedules::name(kind)),
                     .stage = stage,
                     .samples = count,
                     .first = first,
                     .ms = mean_cost(samples),
                     .alone_ms = mean_cost(alone_samples_.at(key)),
                     .spread = spread_of(samples)});
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

void StageLoop::run_step(bool keep) {
  std::set<ActionKind> begun;
  for (const schedules::Action& pass : passes_) {
    const bool first = begun.insert(pass.kind).second;
    if (pass.kind == ActionKind::forward) {
      bring_input(pass.micro_batch, keep);
    } else if (schedules::is_backward(pass.kind) && !position_.last) {
      time(ActionKind::copy_gradient, false, keep,
           [&] { stage_->receive_gradient(pass.micro_batch, gradient_); });
    }
    time(pass.kind, first, keep, [&] { perform(pass); });
  }
  end_step(keep);
}

void StageLoop::bring_input(int micro_batch, bool keep) {
  if (position_.first || position_.last) {
    time(ActionKind::copy_input, false, keep,
         [&] { stage_->load_input(micro_batch, batch_.inputs, batch_.targets); });
  }
  if (position_.first) return;
  time(ActionKind::copy_activation, false, keep,
       [&] { stage_->receive_activation(micro_batch, activation_); });
}

void StageLoop::perform(const schedules::Action& pass) {
  const double weight = 1.0 / micro_batches_;
  const models::SamplePlaceGuard place(workload_.place_of(batch_, 0));
  if (pass.kind == ActionKind::forward) {
    return stage_->forward(pass.micro_batch, weight, /*keeps=*/!recomputes_);
  }
  if (pass.kind == ActionKind::recompute) return stage_->recompute(pass.micro_batch, weight);
  if (pass.kind == ActionKind::backward_weight) return stage_->backward_weight(pass.micro_batch);
  stage_->backward(pass.micro_batch);
}

void StageLoop::end_step(bool keep) {
  if (!replica_.empty()) {
    time(ActionKind::sum_gradients, false, keep, [&] { add_the_replicas_gradients(); });
  }
  if (workload_.options().optimizer.clip_norm == 0) {
    time(ActionKind::optimizer, false, keep, [&] { stage_->update(); });
  } else {
    at::Tensor norm;
    time(ActionKind::gradient_norm, false, keep, [&] { norm = stage_->squared_gradient_norm(); });
    time(ActionKind::optimizer, false, keep, [&] {
      // An update is priced, even if random gradients overflow.
      const auto squared_norm = norm.item<double>();
      stage_->update(std::isfinite(squared_norm) ? squared_norm : 1, 1);
    });
  }
  if (!replica_.empty()) time(ActionKind::replicate, false, keep, [&] { copy_the_replica(); });
}

/// Adds its parameters instead of its gradients: they have the same size.
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
