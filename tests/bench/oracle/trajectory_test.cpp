// That a launch's own evidence passes where its steps are right, and shows each mistake that only
// later steps make.
#include "bench/oracle/trajectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <mutex>

#include "bench/oracle/fingerprint.h"
#include "bench/oracle/rounding.h"
#include "bench/proof/judge.h"
#include "reports/json_fields.h"
#include "tests/bench/oracle/broken_pipelines.h"
#include "tests/strategies/rank_training.h"
#include "tests/strategies/training.h"

namespace stratagem::bench::trajectory_test {
namespace {

using namespace broken;
using strategies::RankTraining;
using strategies::Training;
using testing::HasSubstr;

constexpr std::int64_t steps = 9;
constexpr std::int64_t batches = 8;

/// Has no ReLU.
models::WorkloadOptions workload_of(at::ScalarType dtype = at::kFloat) {
  models::WorkloadOptions options = strategies::small_workload("gpt-tiny", 6);
  options.dtype = dtype;
  return options;
}

/// Cuts batches of 6 into micro-batches of 3.
Reference reference_of(const models::WorkloadOptions& options) {
  const TrajectoryRequest request{.lengths = {steps}, .skipped = {}, .batches = batches};
  models::WorkloadOptions exact = options;
  exact.dtype = at::kDouble;
  const std::vector<schedules::Slice> partition = {{0, 3}, {3, 3}};
  return {.exact = trajectory_of(models::Workload(exact), partition, request),
          .rounded = trajectory_of(models::Workload(options), partition, request),
          .roundoff = unit_roundoff(options.dtype),
          .loss_tolerance = 1e-4,
          .oracle = "one device"};
}

const Reference& reference() {
  static const Reference found = reference_of(workload_of());
  return found;
}

using Batches = std::function<std::uint64_t(std::int64_t)>;

std::uint64_t in_turn(std::int64_t step) { return static_cast<std::uint64_t>(step % batches); }

Evidence evidence_of(Training& training, strategies::Strategy& strategy,
                     const Batches& batch_of = in_turn) {
  Evidence evidence;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto pending = strategy.step(training.workload.make_batch(batch_of(step)));
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    evidence.loss.push_back(pending->loss());
  }
  evidence.state = fingerprints_of(strategy.own_state(/*with_gradients=*/false));
  return evidence;
}

template <class Pipeline>
reports::Proof verdict_on(const Batches& batch_of = in_turn) {
  Training training(workload_of(), 2);
  Pipeline strategy(training.context({.split_size = 3}));
  return judge(evidence_of(training, strategy, batch_of), reference());
}

TEST(TimedSteps, PassWithoutAMistake) {
  const reports::Proof verdict = verdict_on<PipelineOfTwo>();
  EXPECT_TRUE(verdict.passed) << verdict.message;
  EXPECT_LT(verdict.max_relative_error, verdict.tolerance / 2);
}

TEST(TimedSteps, ShowAStaleInput) {
  const reports::Proof verdict = verdict_on<PipelineOfTwo>(
      [](std::int64_t step) { return step < 2 ? in_turn(step) : std::uint64_t{1}; });
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.message, HasSubstr("the loss of step 2 is "));
}

/// The first stage's optimizer does not run in step 5.
class SkipsAnUpdate : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action == Action{ActionKind::optimizer, 0, 0} && step_++ == 5) return;
    StagedStrategy::perform(action, step);
  }

 private:
  int step_ = 0;
};

TEST(TimedSteps, ShowASkippedUpdate) { EXPECT_FALSE(verdict_on<SkipsAnUpdate>().passed); }

/// From step 2 on a forward pass reads its buffer before the copy has come, as a GPU may where no
/// event makes it wait. The backward pass finds the right batch there.
class ReadsBeforeTheCopy : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    StagedStrategy::perform(action, step);
    const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
    if (action.kind == ActionKind::copy_input && action.stage == 0) {
      const schedules::Slice slice = step.plan.slices.at(micro_batch);
      copied_.at(micro_batch) = step.batch.slice(slice.start, slice.count).inputs.clone();
      at::Tensor& buffer = buffers_.at(micro_batch);
      buffer = (step_ < 2 ? copied_ : before_).at(micro_batch).clone();
      stage(0).set_input(action.micro_batch, buffer);
      before_.at(micro_batch) = copied_.at(micro_batch);
    } else if (action.kind == ActionKind::forward && action.stage == 0) {
      // Autograd knows nothing of a copy between devices, either.
      std::memcpy(buffers_.at(micro_batch).data_ptr(), copied_.at(micro_batch).const_data_ptr(),
                  copied_.at(micro_batch).nbytes());
    } else if (action == Action{ActionKind::optimizer, 0, 0}) {
      ++step_;
    }
  }

 private:
  int step_ = 0;
  std::array<at::Tensor, 2> copied_;   // [micro-batch]
  std::array<at::Tensor, 2> before_;   // of the last step
  std::array<at::Tensor, 2> buffers_;  // that the stage reads
};

TEST(TimedSteps, ShowAForwardPassThatDoesNotWaitForItsCopy) {
  EXPECT_FALSE(verdict_on<ReadsBeforeTheCopy>().passed);
}

/// The second stage adds the last step's gradients in step 4 alone.
class KeepsGradientsOnce : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action == Action{ActionKind::optimizer, 1, 0}) {
      const at::NoGradGuard no_gradient;
      for (const auto& parameter : parameters(1)) {
        const at::Tensor gradient = parameter.tensor.grad().clone();
        if (step_ == 4) parameter.tensor.mutable_grad() += old_[parameter.name];
        old_[parameter.name] = gradient;
      }
      ++step_;
    }
    StagedStrategy::perform(action, step);
  }

 private:
  int step_ = 0;
  std::map<std::string, at::Tensor> old_;
};

TEST(TimedSteps, ShowGradientsThatWereKeptOnce) {
  EXPECT_FALSE(verdict_on<KeepsGradientsOnce>().passed);
}

/// The first stage's momentum is that of the step before, from step 6 on.
class KeepsMomentum : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action != Action{ActionKind::optimizer, 0, 0}) {
      return StagedStrategy::perform(action, step);
    }
    std::vector<at::Tensor> before;
    for (const auto& entry : stage(0).optimizer().state()) before.push_back(entry.tensor.clone());
    StagedStrategy::perform(action, step);
    if (step_++ != 6) return;
    const at::NoGradGuard no_gradient;
    const auto after = stage(0).optimizer().state();
    for (std::size_t index = 0; index < after.size(); ++index) {
      after[index].tensor.copy_(before[index]);
    }
  }

 private:
  int step_ = 0;
};

TEST(TimedSteps, ShowAStaleMomentum) { EXPECT_FALSE(verdict_on<KeepsMomentum>().passed); }

TEST(TimedSteps, ShowALearningRateThatIsALittleOff) {
  for (const double factor : {1.01, 1.0001}) {
    Training training(workload_of(), 2);
    PipelineOfTwo strategy(training.context({.split_size = 3}));
    strategy.set_learning_rate(factor * workload_of().optimizer.learning_rate);
    EXPECT_FALSE(judge(evidence_of(training, strategy), reference()).passed) << factor;
  }
}

TEST(TimedSteps, ShowAMicroBatchThatIsUsedTwice) {
  EXPECT_FALSE(verdict_on<AddsAGradientTwice>().passed);
  EXPECT_FALSE(verdict_on<LosesAMicroBatch>().passed);
}

/// Gradients are twice what they should be, as of a loss whose scale was left on.
class KeepsTheScale : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action == Action{ActionKind::optimizer, 1, 0} && step_++ == 7) {
      const at::NoGradGuard no_gradient;
      for (const auto& parameter : parameters(1)) parameter.tensor.mutable_grad() *= 2;
    }
    StagedStrategy::perform(action, step);
  }

 private:
  int step_ = 0;
};

TEST(TimedSteps, ShowAScaleThatWasLeftOn) { EXPECT_FALSE(verdict_on<KeepsTheScale>().passed); }

/// The strategy of replicas, right as it is.
class Replicas : public StagedStrategy {
 public:
  explicit Replicas(const StrategyContext& context)
      : StagedStrategy(context, strategies::planner_of_replicas(context)) {}
};

/// One rank leaves out its share of an update.
class SkipsAShard : public Replicas {
 public:
  using Replicas::Replicas;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    const bool is_last = action.kind == ActionKind::optimizer && step_++ + 1 == steps;
    if (is_last && groups().data.front()->rank() == 1) return;
    StagedStrategy::perform(action, step);
  }

 private:
  std::int64_t step_ = 0;
};

/// One rank's last micro-batch comes after its gradients were summed.
class SumsTooEarly : public Replicas {
 public:
  using Replicas::Replicas;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    const bool sums = action.kind == ActionKind::reduce_scatter && action.stage == 1;
    if (sums && groups().data.front()->rank() == 1) {
      const at::NoGradGuard no_gradient;
      for (const auto& parameter : models::parameters(stage(1).layers())) {
        parameter.tensor.mutable_grad() *= 0.5;
      }
    }
    StagedStrategy::perform(action, step);
  }
};

template <class Made>
reports::Proof verdict_on_ranks(strategies::StrategyOptions options, bool sharded) {
  std::mutex mutex;
  Evidence all;
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    RankTraining training(ranks, workload_of(), {.replicas = 2, .sharded = sharded});
    Made strategy(training.rank_context(options));
    const Evidence own = evidence_of(training, strategy);
    const std::lock_guard lock(mutex);
    all.loss = own.loss;
    for (const auto& [name, part] : own.state) {
      if (sharded || ranks.info().rank == 0) all.state[name].add(part);
    }
  });
  return judge(all, reference());
}

TEST(TimedSteps, ShowAShardThatIsNotUpdated) {
  const strategies::StrategyOptions options{.shard = "gradients"};
  const reports::Proof right = verdict_on_ranks<Replicas>(options, true);
  EXPECT_TRUE(right.passed) << right.message;
  EXPECT_FALSE(verdict_on_ranks<SkipsAShard>(options, true).passed);
}

TEST(TimedSteps, ShowASumBeforeTheLastGradient) {
  EXPECT_FALSE(verdict_on_ranks<SumsTooEarly>({.shard = "gradients"}, true).passed);
}

TEST(TimedSteps, PassWhereReplicasHoldTheWholeState) {
  const reports::Proof right = verdict_on_ranks<Replicas>({}, false);
  EXPECT_TRUE(right.passed) << right.message;
}

TEST(Trajectory, LeavesOutTheSkippedUpdates) {
  const models::Workload workload(workload_of());
  TrajectoryRequest request{.lengths = {1, 2}, .skipped = {1}, .batches = batches};
  const auto after = [](const Trajectory& trajectory, std::int64_t count) {
    return reports::json_fields::json_of(*trajectory.after(count));
  };
  const Trajectory skipped = trajectory_of(workload, {{0, 6}}, request);
  EXPECT_EQ(after(skipped, 1), after(skipped, 2));
  request.skipped.clear();
  const Trajectory updated = trajectory_of(workload, {{0, 6}}, request);
  EXPECT_EQ(after(skipped, 1), after(updated, 1));
  EXPECT_NE(after(skipped, 2), after(updated, 2));
}

TEST(Trajectory, OfSeveralShakenOnesTheFurthestValuesCount) {
  models::WorkloadOptions options = strategies::small_workload("mlp", 4);
  options.dtype = at::kDouble;
  const models::Workload workload(options);
  TrajectoryRequest request{.lengths = {2}, .skipped = {}};
  const Trajectory exact = trajectory_of(workload, {{0, 4}}, request);
  request.shaken = 1e-6;
  const Trajectory one = trajectory_of(workload, {{0, 4}}, request);
  request.draw = 1;
  const Trajectory other = trajectory_of(workload, {{0, 4}}, request);
  const Trajectory both = furthest(one, other, exact);
  for (std::size_t step = 0; step < exact.loss.size(); ++step) {
    const double expected = exact.loss[step];
    EXPECT_EQ(std::abs(both.loss[step] - expected),
              std::max(std::abs(one.loss[step] - expected), std::abs(other.loss[step] - expected)));
  }
  std::size_t changed = 0;
  for (const auto& [name, fingerprint] : *exact.after(2)) {
    const auto off = [&name = name, &from = fingerprint](const Trajectory& of) {
      return distance(of.after(2)->at(name), from);
    };
    EXPECT_EQ(off(both), std::max(off(one), off(other))) << name;
    changed += off(both) != off(one) ? 1 : 0;
  }
  EXPECT_GT(changed, 0U) << "two draws have other numbers";
}

}  // namespace
}  // namespace stratagem::bench::trajectory_test
