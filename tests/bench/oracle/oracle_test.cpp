// The oracle, and that a comparison with it sees a strategy that computes something else.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "bench/oracle/oracle.h"
#include "strategies/backends/memory_accounting.h"
#include "tests/bench/oracle/broken_pipelines.h"
#include "tests/strategies/training.h"

namespace stratagem::bench::oracle_test {
namespace {

using namespace broken;
using strategies::small_workload;
using strategies::Training;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class Broken>
reports::Verdict verify(const models::WorkloadOptions& options, std::int64_t split) {
  Training training(options, 2);
  Broken strategy(training.context({.split_size = split}));
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

TEST(Verification, SeesWeightsThatOutliveTheUpdate) {
  for (const char* model : {"toy", "mlp", "resnet18"}) {
    EXPECT_THAT(message_for<OutlivesTheUpdate>(model), StartsWith("loss in evaluation mode"));
  }
}

TEST(Verification, HoldsOneStateOfTheOracleAndOneOfTheStrategy) {
  backends::install_accounting_allocator();
  auto options = small_workload("mlp", 2);
  options.width = 0.5;
  Training training(options, 1);
  strategies::Strategy& strategy = training.make("single");
  constexpr std::int64_t entries = 3;  // of a parameter: itself, its gradient, its momentum
  const std::int64_t state = entries * 8 * training.workload.parameter_count();
  const auto before = backends::memory_of(backends::host_account).current_bytes;
  backends::reset_peak_of(backends::host_account);
  EXPECT_TRUE(compare_with_oracle(strategy, training.workload).passed);
  const auto most = backends::memory_of(backends::host_account).peak_bytes - before;
  EXPECT_GE(most, 2 * state);
  // With the momentum that the strategy takes over, and a layer's differences.
  EXPECT_LT(static_cast<double>(most), 2.6 * static_cast<double>(state));
}

TEST(Oracle, IsPlainGradientDescent) {
  auto options = small_workload("toy", 4);
  options.optimizer = {.learning_rate = 0.25};
  const models::Workload workload(options);
  const Batch batch = workload.make_batch(0);
  Oracle oracle(workload, batch, {{0, 4}}, 0);
  const OracleStep first = oracle.step();
  const models::Model model = workload.make_model();
  for (const auto& [name, tensor] : models::parameters(model.layers)) {
    const at::Tensor gradient = first.state.at("gradient." + name);
    EXPECT_TRUE(at::allclose(first.state.at(name), tensor.detach() - 0.25 * gradient, 0, 1e-15))
        << name;
  }
  // The mean square error by hand.
  const at::Tensor difference = models::forward(model.layers, batch.inputs) - batch.targets;
  EXPECT_NEAR(first.loss, difference.square().mean().item<double>(), 1e-15);
  EXPECT_LT(oracle.step().loss, first.loss);
}

TEST(Oracle, DoesNotDependOnThePartitionWithoutBatchNorm) {
  const models::Workload workload(small_workload("mlp", 7));
  const Batch batch = workload.make_batch(0);
  const OracleStep whole = Oracle(workload, batch, {{0, 7}}, 0).step();
  const OracleStep parts = Oracle(workload, batch, {{0, 3}, {3, 3}, {6, 1}}, 0).step();
  EXPECT_NEAR(whole.loss, parts.loss, 1e-14);
  for (const auto& [name, tensor] : whole.state) {
    EXPECT_TRUE(at::allclose(tensor, parts.state.at(name), 1e-9, 1e-14)) << name;
  }
}

TEST(Oracle, NormalisesWhatThePartitionPutsTogether) {
  const models::Workload workload(small_workload("resnet18", 6));
  const Batch batch = workload.make_batch(0);
  const OracleStep whole = Oracle(workload, batch, {{0, 6}}, 0).step();
  const OracleStep parts = Oracle(workload, batch, {{0, 3}, {3, 3}}, 0).step();
  EXPECT_GT(std::abs(whole.loss - parts.loss), 1e-6);
  EXPECT_EQ(parts.state.at("bn1.num_batches_tracked").item<double>(), 2);
}

TEST(Oracle, AZeroGradientIsAnError) {
  const models::Workload workload(small_workload("toy", 4));
  Batch batch = workload.make_batch(0);
  batch.inputs = at::zeros_like(batch.inputs);  // nothing reaches the first layer's weight
  try {
    require_gradients(Oracle(workload, batch, {{0, 4}}, 0).step());
    FAIL() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(
        error.what(),
        "verification: the gradient of net1.weight is zero on one device, so a comparison proves "
        "nothing; use another seed or batch");
  }
}

TEST(Oracle, ForwardLossIsTheFirstStepsLoss) {
  for (const char* model : {"mlp", "resnet18"}) {
    const models::Workload workload(small_workload(model, 5));
    const Batch batch = workload.make_batch(0);
    const std::vector<schedules::Slice> partition{{0, 3}, {3, 2}};
    EXPECT_NEAR(forward_loss(workload, batch, partition),
                Oracle(workload, batch, partition, 0).step().loss, 1e-12)
        << model;
  }
}

TEST(Oracle, ForwardLossHoldsOneLayerAtATime) {
  backends::install_accounting_allocator();
  const models::Workload workload({.model = "mlp", .batch = 2});
  const Batch batch = workload.make_batch(0);
  const auto before = backends::memory_of(backends::host_account).current_bytes;
  backends::reset_peak_of(backends::host_account);
  forward_loss(workload, batch, {{0, 1}, {1, 1}});
  const auto most = backends::memory_of(backends::host_account).peak_bytes - before;
  constexpr std::int64_t layer = 4 * (1024 * 1024 + 1024);  // the largest of eight
  EXPECT_GE(most, layer);
  EXPECT_LT(most, 3 * layer) << "with what its product packs";
}

}  // namespace
}  // namespace stratagem::bench::oracle_test
