// A whole step in float32 against the reference kernels'.
#include "bench/oracle/step_comparison.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "bench/oracle/oracle.h"
#include "tests/bench/oracle/broken_operators.h"
#include "tests/bench/oracle/broken_pipelines.h"
#include "tests/strategies/training.h"

namespace stratagem::bench::step_comparison_test {
namespace {

using namespace broken;
using strategies::Training;
using ::testing::HasSubstr;

/// Wide enough for every kernel of ours, which are chosen as for the whole width.
models::WorkloadOptions workload_of(const std::string& model, at::ScalarType dtype = at::kFloat) {
  models::WorkloadOptions options;
  options.model = model;
  options.batch = 10;
  if (model == "mlp" || model.starts_with("resnet")) options.width = 0.5;
  options.dtype = dtype;
  options.optimizer = {.learning_rate = 0.1, .momentum = 0.9};
  options.seed = 3;
  if (model.starts_with("resnet")) options.image_size = 36;
  if (model.starts_with("gpt")) options.loss = models::Loss::cross_entropy;
  return options;
}

template <class Pipeline = PipelineOfTwo>
Differences step_of(const models::WorkloadOptions& options) {
  const at::ScalarType dtype = options.dtype;
  Training training(options, 2);
  Pipeline strategy(training.context({.split_size = 6}));
  return compare_step(strategy, training.workload,
                      {.dtype = dtype, .roundoff = unit_roundoff(dtype), .reference = dtype},
                      /*batch=*/0);
}

TEST(StepInOwnArithmetic, IsTheReferenceKernelsRounded) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const char* model : {"toy", "mlp", "resnet18", "gpt-tiny"}) {
      SCOPED_TRACE(testing::Message() << model << " in " << dtype);
      const Differences found = step_of(workload_of(model, dtype));
      EXPECT_TRUE(found.within()) << found.verdict().message;
      EXPECT_LE(found.error(), found.bound() / 2) << found.where() << ": too near to the bound";
    }
  }
}

// At this scale squares of gradients exceed float32, so that several steps are skipped, each of
// which counts in a normalisation's statistics.
TEST(StepInOwnArithmetic, IsTheFirstThatIsNotSkipped) {
  models::WorkloadOptions options = workload_of("resnet18");
  options.loss_scale = 0x1p70;
  options.dynamic_loss_scale = true;
  const Differences found = step_of(options);
  EXPECT_TRUE(found.within()) << found.verdict().message;
}

template <class Broken>
void expect_seen(const char* model, const std::string& where) {
  const Differences found = step_of<Broken>(workload_of(model));
  EXPECT_GT(found.error(), 4 * found.bound()) << model;
  EXPECT_THAT(found.where(), HasSubstr(where)) << model;
}

TEST(StepInOwnArithmetic, ShowsMistakesOfAStrategy) {
  for (const char* model : {"mlp", "resnet18"}) {
    expect_seen<LosesAMicroBatch>(model, "");
    expect_seen<WeighsTheRemainderAsTheOthers>(model, "");
    expect_seen<AddsAGradientTwice>(model, "");
    expect_seen<ForgetsToUpdate>(model, "");
  }
  expect_seen<LeavesABufferStale>("resnet18", "layer1.1.bn2.running_mean");
}

TEST(StepInOwnArithmetic, ShowsABrokenKernelOfAShallowNetwork) {
  for (const char* model : {"mlp", "gpt-tiny"}) {
    for (const char* name : {"mkldnn::_linear_pointwise", "aten::addmm_"}) {
      const BrokenOperator broken(name, lose_the_last_lane);
      models::WorkloadOptions options = workload_of(model);
      options.batch = 30;  // the more units there are, the less may be undecided
      const Differences found = step_of(options);
      EXPECT_GT(found.error(), 1.5 * found.bound()) << name << " of " << model;
    }
  }
}

/// Both train for two steps, each from its own parameters, in float32.
TEST(TrainingInFloat32, IsThatOfTheReferenceKernels) {
  for (const char* model : {"mlp", "gpt-tiny"}) {
    Training training(workload_of(model), 2);
    PipelineOfTwo strategy(training.context({.split_size = 6}));
    const models::Batch batch = training.workload.make_batch(0);
    const auto partition = strategy.batch_partition(batch.size());
    Oracle oracle(training.workload, batch, partition, 0);
    oracle.step();
    const OracleStep expected = oracle.step();
    const auto first = strategy.step(batch);
    const auto second = strategy.step(batch);
    const auto found = strategy.state();
    EXPECT_LE(relative_distance(second->loss(), expected.loss), 1e-5) << model;
    for (const auto& [name, tensor] : expected.state) {
      EXPECT_LE(relative_distance(found.at(name), tensor), 1e-4) << model << ": " << name;
    }
  }
}

}  // namespace
}  // namespace stratagem::bench::step_comparison_test
