// The oracle, and that a comparison with it sees a strategy that computes something else.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "bench/task_oracle.h"
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/staged_strategy.h"
#include "strategies/slices.h"
#include "tests/strategies/training.h"

namespace stratagem::bench {
namespace {

using models::Batch;
using pipeline::Action;
using pipeline::ActionKind;
using strategies::small_workload;
using strategies::StagedStrategy;
using strategies::StrategyContext;
using strategies::Training;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Two stages, 1f1b: right as it is, and what the broken ones are made from.
class PipelineOfTwo : public StagedStrategy {
 public:
  PipelineOfTwo(const StrategyContext& context, int micro_batches)
      : StagedStrategy(
            context, pipeline::make_schedule("1f1b", 2, micro_batches), 0,
            strategies::split_batch(context.workload.options().batch, context.options.split_size)) {
  }

 protected:
  std::vector<models::NamedTensor> parameters(int index) {
    return models::parameters(stage(index).layers());
  }
};

/// The last micro-batch goes forward, never backward.
class LosesAMicroBatch : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, strategies::StepInProgress& step) override {
    const bool lost = action.micro_batch == 1 && (action.kind == ActionKind::backward ||
                                                  action.kind == ActionKind::copy_gradient);
    if (!lost) return StagedStrategy::perform(action, step);
    if (action.stage == 1) step.losses[1] = stage(1).take_loss(1);
  }
};

/// Every micro-batch counts alike, the smaller last one too.
class WeighsTheRemainderAsTheOthers : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  double weight(int) const override { return 1.0 / static_cast<double>(batch_partition().size()); }
};

/// The second micro-batch's gradients of the first stage count twice.
class AddsAGradientTwice : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, strategies::StepInProgress& step) override {
    std::vector<at::Tensor> before;
    const bool twice = action == Action{ActionKind::backward, 0, 1};
    if (twice) {
      for (const auto& parameter : parameters(0)) before.push_back(parameter.tensor.grad().clone());
    }
    StagedStrategy::perform(action, step);
    if (!twice) return;
    const auto all = parameters(0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].tensor.mutable_grad() = 2 * all[i].tensor.grad() - before[i];
    }
  }
};

/// The second stage starts a step from the last step's gradients instead of none. Invisible in the
/// first step.
class KeepsOldGradients : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, strategies::StepInProgress& step) override {
    StagedStrategy::perform(action, step);
    if (action == Action{ActionKind::backward, 1, 0}) {
      for (const auto& parameter : parameters(1)) {
        if (old_.contains(parameter.name)) parameter.tensor.mutable_grad() += old_[parameter.name];
      }
    }
    if (action == Action{ActionKind::optimizer, 1, 0}) {
      for (const auto& parameter : parameters(1)) {
        old_[parameter.name] = parameter.tensor.grad().clone();
      }
    }
  }

 private:
  std::map<std::string, at::Tensor> old_;
};

/// One stage's optimizer never runs.
class ForgetsToUpdate : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, strategies::StepInProgress& step) override {
    if (action != Action{ActionKind::optimizer, 1, 0}) {
      StagedStrategy::perform(action, step);
    }
  }
};

/// A running mean is what it was before the step, as if the buffers were not written back.
class LeavesABufferStale : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, strategies::StepInProgress& step) override {
    if (action == Action{ActionKind::forward, 0, 0}) before_ = running_mean().clone();
    StagedStrategy::perform(action, step);
    if (action == Action{ActionKind::optimizer, 0, 0}) running_mean().copy_(before_);
  }

 private:
  at::Tensor running_mean() {
    for (const auto& buffer : models::buffers(stage(0).layers())) {
      if (buffer.name == "layer1.1.bn2.running_mean") return buffer.tensor;
    }
    throw std::logic_error("no such buffer");
  }

  at::Tensor before_;
};

/// A micro-batch is normalised by the running statistics, not its own.
class NormalisesByRunningStatistics : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, strategies::StepInProgress& step) override {
    const bool wrong = action == Action{ActionKind::forward, 0, 1};
    if (wrong) stage(0).set_training(false);
    StagedStrategy::perform(action, step);
    if (wrong) stage(0).set_training(true);
  }
};

/// It trains as it should and reports no number.
class ReportsNoLoss : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, strategies::StepInProgress& step) override {
    StagedStrategy::perform(action, step);
    if (action == Action{ActionKind::backward, 1, 0}) {
      step.losses[0] = at::full({}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    }
  }
};

/// It evaluates another number of samples than it was asked to.
class EvaluatesTooLittle : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;
  double evaluate(const Batch& batch) override { return 0.5 * PipelineOfTwo::evaluate(batch); }
};

template <class Broken>
reports::Verification verify(const models::WorkloadOptions& options, std::int64_t split) {
  Training training(options, 2);
  Broken strategy(training.context({.split_size = split}),
                  static_cast<int>((options.batch + split - 1) / split));
  return compare_with_oracle(strategy, training.workload);
}

template <class Broken>
std::string message_for(const char* model) {
  const auto result = verify<Broken>(small_workload(model, 5), 3);  // micro-batches of 3 and 2
  EXPECT_FALSE(result.passed);
  EXPECT_GT(result.max_relative_error, 1e-6) << "a mistake, not rounding";
  return result.message;
}

TEST(Verification, PassesWithoutAMistake) {
  for (const char* model : {"toy", "mlp", "resnet18"}) {
    const auto result = verify<PipelineOfTwo>(small_workload(model, 5), 3);
    EXPECT_TRUE(result.passed) << result.message;
    EXPECT_EQ(result.message, "");
    EXPECT_EQ(result.tolerance, 1e-9);
    EXPECT_LT(result.max_relative_error, 1e-9);
    EXPECT_EQ(result.oracle, "one device, 2 micro-batches, 3 steps, float64");
  }
}

TEST(Verification, SeesALostMicroBatch) {
  for (const char* model : {"toy", "mlp", "resnet18"}) {
    EXPECT_THAT(message_for<LosesAMicroBatch>(model), HasSubstr(" differs from the oracle by "));
  }
  EXPECT_THAT(message_for<LosesAMicroBatch>("toy"), HasSubstr("net"));
}

TEST(Verification, SeesAWrongWeightOfTheRemainder) {
  EXPECT_THAT(message_for<WeighsTheRemainderAsTheOthers>("toy"), HasSubstr("net"));
  EXPECT_THAT(message_for<WeighsTheRemainderAsTheOthers>("mlp"), HasSubstr("fc"));
  message_for<WeighsTheRemainderAsTheOthers>("resnet18");
  const auto even = verify<WeighsTheRemainderAsTheOthers>(small_workload("toy", 4), 2);
  EXPECT_TRUE(even.passed) << "without a remainder equal weights are right: " << even.message;
}

TEST(Verification, SeesAGradientAddedTwice) {
  EXPECT_THAT(message_for<AddsAGradientTwice>("toy"), HasSubstr("net1."));
  EXPECT_THAT(message_for<AddsAGradientTwice>("mlp"), HasSubstr("fc"));
  message_for<AddsAGradientTwice>("resnet18");
}

TEST(Verification, SeesGradientsThatWereNotDropped) {
  EXPECT_THAT(message_for<KeepsOldGradients>("toy"), HasSubstr("net2."));
  EXPECT_THAT(message_for<KeepsOldGradients>("mlp"), HasSubstr("fc"));
  message_for<KeepsOldGradients>("resnet18");
}

TEST(Verification, SeesAMissingUpdate) {
  EXPECT_THAT(message_for<ForgetsToUpdate>("toy"),
              StartsWith("optimizer.momentum_buffer.net2.bias (missing) differs"));
  auto options = small_workload("toy", 5);
  options.optimizer = {.learning_rate = 0.1};  // no state: only the parameters tell
  const auto result = verify<ForgetsToUpdate>(options, 3);
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.message, HasSubstr("net2."));
}

TEST(Verification, SeesAStaleBuffer) {
  EXPECT_THAT(message_for<LeavesABufferStale>("resnet18"),
              StartsWith("layer1.1.bn2.running_mean differs from the oracle by "));
}

TEST(Verification, SeesStatisticsOfTheWrongBatch) {
  message_for<NormalisesByRunningStatistics>("resnet18");
}

TEST(Verification, SeesALossThatIsNoNumber) {
  const auto result = verify<ReportsNoLoss>(small_workload("toy", 5), 3);
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.message, StartsWith("the loss of step 1 (not a number) differs"));
}

TEST(Verification, SeesAWrongEvaluation) {
  EXPECT_THAT(message_for<EvaluatesTooLittle>("toy"),
              StartsWith("loss in evaluation mode differs from the oracle by 0.5 "));
}

TEST(Oracle, IsPlainGradientDescent) {
  auto options = small_workload("toy", 4);
  options.optimizer = {.learning_rate = 0.25};
  const models::Workload workload(options);
  const Batch batch = workload.make_batch(0);
  const OracleRun run = run_oracle(workload, batch, {{0, 4}}, 0, 2);
  ASSERT_EQ(run.steps.size(), 2U);
  const models::Model model = workload.make_model();
  for (const auto& [name, tensor] : models::parameters(model.layers)) {
    const at::Tensor gradient = run.steps[0].state.at("gradient." + name);
    EXPECT_TRUE(
        at::allclose(run.steps[0].state.at(name), tensor.detach() - 0.25 * gradient, 0, 1e-15))
        << name;
  }
  // The mean square error by hand.
  const at::Tensor difference = models::forward(model.layers, batch.inputs) - batch.targets;
  EXPECT_NEAR(run.steps[0].loss, difference.square().mean().item<double>(), 1e-15);
  EXPECT_LT(run.steps[1].loss, run.steps[0].loss);
}

TEST(Oracle, DoesNotDependOnThePartitionWithoutBatchNorm) {
  const models::Workload workload(small_workload("mlp", 7));
  const Batch batch = workload.make_batch(0);
  const OracleRun whole = run_oracle(workload, batch, {{0, 7}}, 0, 1);
  const OracleRun parts = run_oracle(workload, batch, {{0, 3}, {3, 3}, {6, 1}}, 0, 1);
  EXPECT_NEAR(whole.steps[0].loss, parts.steps[0].loss, 1e-14);
  for (const auto& [name, tensor] : whole.steps[0].state) {
    EXPECT_TRUE(at::allclose(tensor, parts.steps[0].state.at(name), 1e-9, 1e-14)) << name;
  }
}

TEST(Oracle, NormalisesWhatThePartitionPutsTogether) {
  const models::Workload workload(small_workload("resnet18", 6));
  const Batch batch = workload.make_batch(0);
  const OracleRun whole = run_oracle(workload, batch, {{0, 6}}, 0, 1);
  const OracleRun parts = run_oracle(workload, batch, {{0, 3}, {3, 3}}, 0, 1);
  EXPECT_GT(std::abs(whole.steps[0].loss - parts.steps[0].loss), 1e-6);
  EXPECT_EQ(parts.steps[0].state.at("bn1.num_batches_tracked").item<double>(), 2);
}

TEST(Oracle, AZeroGradientIsAnError) {
  const models::Workload workload(small_workload("toy", 4));
  Batch batch = workload.make_batch(0);
  batch.inputs = at::zeros_like(batch.inputs);  // nothing reaches the first layer's weight
  try {
    run_oracle(workload, batch, {{0, 4}}, 0, 1);
    FAIL() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(
        error.what(),
        "the oracle's gradient of net1.weight is zero: a comparison with it would prove nothing");
  }
}

TEST(Oracle, ForwardLossIsTheFirstStepsLoss) {
  for (const char* model : {"mlp", "resnet18"}) {
    const models::Workload workload(small_workload(model, 5));
    const Batch batch = workload.make_batch(0);
    const std::vector<strategies::Slice> partition{{0, 3}, {3, 2}};
    EXPECT_NEAR(forward_loss(workload, batch, partition),
                run_oracle(workload, batch, partition, 0, 1).steps[0].loss, 1e-12)
        << model;
  }
}

}  // namespace
}  // namespace stratagem::bench
