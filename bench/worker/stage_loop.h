// StageLoop runs one stage, with everything that its neighbours would hand it, repeatedly to find
// the costs of its actions.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "bench/predict/stage_costs.h"
#include "bench/timing/measurement_barrier.h"
#include "strategies/schedules/action.h"
#include "strategies/stages/stage.h"

namespace stratagem::bench {

class StageLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  /// `passes` are those of the stage in one step, in their order, so that the number of
  /// micro-batches in flight is the row's; the update follows them. `now` times the actions.
  StageLoop(const models::Workload& workload, runtime::Device& device,
            std::unique_ptr<stages::Stage> stage, stages::Stage::Position position,
            const models::Shape& input_shape, std::int64_t samples,
            std::vector<schedules::Action> passes, Now now = Clock::now);

  /// Ends each step with the exchange of replicas in one process; on the device's thread.
  void exchange_with_a_replica();

  /// Enqueues steps for `length`, in pieces that each have the device's time limit; on a GPU each
  /// action is waited for. Pieces that a failed device skips release their member.
  void enqueue(const std::shared_ptr<MeasurementBarrier>& together, Clock::duration length);

  /// Enqueues one step, while the other devices should be idle.
  void enqueue_alone(bool keep);

  /// Adds the measured costs as those of stage `stage`.
  void add_costs(int stage, std::vector<ActionCost>& costs);

 private:
  using Samples = std::vector<double>;  // times of one cost, in milliseconds

  at::Tensor in_format(const at::Tensor& tensor) const;
  void enqueue(std::function<void()> piece);
  void time(schedules::ActionKind kind, bool first, bool keep, const std::function<void()>& work);
  void run_step(bool keep);
  void bring_input(int micro_batch, bool keep);
  void perform(const schedules::Action& pass);
  void end_step(bool keep);
  void add_the_replicas_gradients();
  void copy_the_replica();

  const models::Workload& workload_;
  runtime::Device& device_;
  std::unique_ptr<stages::Stage> stage_;
  stages::Stage::Position position_;
  std::int64_t samples_;
  std::vector<schedules::Action> passes_;
  int micro_batches_;
  bool recomputes_;
  Now now_;
  models::Batch batch_;
  at::Tensor activation_;
  at::Tensor gradient_;
  /// The parameters and buffers, and a replica's.
  std::vector<std::pair<at::Tensor, at::Tensor>> replica_;
  bool alone_ = false;
  std::map<std::pair<schedules::ActionKind, bool>, Samples> busy_samples_;
  std::map<std::pair<schedules::ActionKind, bool>, Samples> alone_samples_;
};

}  // namespace stratagem::bench
