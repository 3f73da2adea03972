// nn.DataParallel's way: chunks, update, what moves, and mistakes that verification sees.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/oracle/oracle.h"
#include "strategies/data_parallel/data_parallel_strategy.h"
#include "strategies/distributed/counted_costs.h"
#include "tests/strategies/training.h"

namespace stratagem::data_parallel::data_parallel_test {
namespace {

using schedules::Action;
using schedules::ActionKind;
using strategies::small_workload;
using strategies::Training;
using Scatter = decltype(strategies::StrategyOptions::scatter);
using ::testing::HasSubstr;

TEST(ChunkBatch, IsTorchChunk) {
  for (std::int64_t batch = 1; batch <= 40; ++batch) {
    for (std::int64_t parts = 1; parts <= 8; ++parts) {
      const auto expected = at::arange(batch).chunk(parts);
      const auto found = schedules::chunk_batch(batch, parts);
      ASSERT_EQ(found.size(), expected.size()) << batch << " on " << parts;
      std::int64_t start = 0;
      for (std::size_t index = 0; index < found.size(); ++index) {
        EXPECT_EQ(found[index], (schedules::Slice{.start = start,
                                                  .count = expected[index].size(0),
                                                  .replica = static_cast<int>(index)}));
        start += found[index].count;
      }
    }
  }
}

TEST(DataParallel, EqualsOneDeviceThatSeesTheSameChunks) {
  for (const char* model : {"toy", "mlp", "gpt-tiny", "resnet18"}) {
    const bool large = model == std::string("gpt-tiny") || model == std::string("resnet18");
    for (const int devices : large ? std::vector{2, 3} : std::vector{1, 2, 3, 4}) {
      auto options = small_workload(model, 9);
      if (options.model == "gpt-tiny") options.loss = models::Loss::cross_entropy;
      if (options.model == "gpt-tiny") options.classes = 0;
      Training training(options, devices);
      for (const int output : {0, devices - 1}) {
        for (const Scatter scatter : {Scatter("first"), Scatter("host")}) {
          const auto result = bench::compare_with_oracle(
              training.make("data_parallel", {.output_device = output, .scatter = scatter}),
              training.workload);
          EXPECT_TRUE(result.passed) << model << " on " << devices << ", output " << output
                                     << ", scatter " << scatter << ": " << result.message;
        }
      }
    }
  }
}

TEST(DataParallel, TakesBatchesOfAnySize) {
  for (std::int64_t samples = 1; samples <= 9; ++samples) {
    Training training(small_workload("resnet18", 9), 4);
    strategies::Strategy& strategy = training.make("data_parallel");
    const models::Batch batch = training.workload.make_batch(0).slice(0, samples);
    const auto expected =
        bench::Oracle(training.workload, batch, strategy.batch_partition(samples), 0).step();
    const auto step = strategy.step(batch);
    EXPECT_LT(strategies::largest_difference(strategy.state(), expected.state), 1e-9) << samples;
    EXPECT_NEAR(step->loss(), expected.loss, 1e-12);
  }
}

TEST(DataParallel, OneChunkIsSingleBitForBit) {
  for (const std::int64_t samples : {1, 4}) {
    const auto options = small_workload("mlp", samples);
    Training one(options, 1);
    Training other(options, samples == 1 ? 3 : 1);
    strategies::Strategy& single = one.make("single");
    strategies::Strategy& parallel = other.make("data_parallel");
    for (std::uint64_t step = 0; step < 3; ++step) {
      single.step(one.workload.make_batch(step));
      parallel.step(one.workload.make_batch(step));
    }
    EXPECT_EQ(strategies::largest_difference(single.state(), parallel.state()), 0);
  }
}

TEST(DataParallel, StepsEnqueuedBackToBackAreThoseOfOneAtATime) {
  Training ahead(small_workload("toy", 6), 3);
  Training one_by_one(small_workload("toy", 6), 1);
  strategies::Strategy& enqueued = ahead.make("data_parallel");
  strategies::Strategy& single = one_by_one.make("single");
  for (std::uint64_t step = 0; step < 200; ++step) {
    enqueued.step(ahead.workload.make_batch(step));
    single.step(ahead.workload.make_batch(step));
  }
  EXPECT_LT(strategies::largest_difference(enqueued.state(), single.state()), 1e-12);
}

TEST(DataParallel, MovesWhatTheFormulasSay) {
  for (const Scatter scatter : {Scatter("first"), Scatter("host")}) {
    for (const int output : {0, 2}) {
      Training training(small_workload("resnet18", 7), 3);
      strategies::Strategy& strategy =
          training.make("data_parallel", {.output_device = output, .scatter = scatter});
      strategy.step(training.workload.make_batch(0));
      strategy.state();
      EXPECT_EQ(distributed::difference_from_costs(strategy.take_counts(), strategy.costs(7)), "");
      EXPECT_TRUE(strategy.take_counts().empty());
    }
  }
}

TEST(DataParallel, AnOutputDeviceThatIsNotThereIsRefused) {
  Training training(small_workload("toy", 4), 2);
  try {
    training.make("data_parallel", {.output_device = 2});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--output-device 2: the row has 2 devices; expected 0 to 1");
  }
}

/// Leaves out, or does wrongly, one kind of action.
class Broken : public DataParallelStrategy {
 public:
  Broken(const strategies::StrategyContext& context, std::function<bool(const Action&)> left_out)
      : DataParallelStrategy(context), left_out_(std::move(left_out)) {}

 protected:
  void perform(const Action& action, Work& work) override {
    if (!left_out_(action)) DataParallelStrategy::perform(action, work);
  }

 private:
  std::function<bool(const Action&)> left_out_;
};

std::string message_without(const std::function<bool(const Action&)>& left_out) {
  Training training(small_workload("resnet18", 6), 2);
  Broken strategy(training.context(), left_out);
  return bench::compare_with_oracle(strategy, training.workload).message;
}

TEST(DataParallel, VerificationSeesGradientsThatWereNotSummed) {
  EXPECT_THAT(message_without(
                  [](const Action& action) { return action.kind == ActionKind::sum_gradients; }),
              HasSubstr("differs from the oracle"));
}

TEST(DataParallel, VerificationSeesAStaleReplica) {
  int seen = 0;
  EXPECT_THAT(message_without([&](const Action& action) {
                return action.kind == ActionKind::replicate && seen++ > 0;
              }),
              HasSubstr("differs from the oracle"));
}

/// Joins the outputs in another order than the samples'.
class GathersBackwards : public DataParallelStrategy {
 public:
  using DataParallelStrategy::DataParallelStrategy;

 protected:
  void perform(const Action& action, Work& work) override {
    DataParallelStrategy::perform(action, work);
    if (action.kind == ActionKind::gather) work.outputs = work.outputs.flip(0);
  }
};

/// Keeps the second replica's running statistics.
class KeepsTheWrongBuffers : public DataParallelStrategy {
 public:
  using DataParallelStrategy::DataParallelStrategy;

 protected:
  void perform(const Action& action, Work& work) override {
    DataParallelStrategy::perform(action, work);
    if (action.kind != ActionKind::optimizer) return;
    const auto own = models::buffers(stage_at(0, 0).layers());
    const auto other = models::buffers(stage_at(1, 0).layers());
    for (std::size_t index = 0; index < own.size(); ++index) {
      own[index].tensor.copy_(other[index].tensor);
    }
  }
};

TEST(DataParallel, VerificationSeesAWrongOrderAndTheWrongBuffers) {
  Training training(small_workload("resnet18", 6), 2);
  GathersBackwards backwards(training.context());
  EXPECT_THAT(bench::compare_with_oracle(backwards, training.workload).message,
              HasSubstr("differs from the oracle"));
  KeepsTheWrongBuffers buffers(training.context());
  EXPECT_THAT(bench::compare_with_oracle(buffers, training.workload).message,
              HasSubstr("running_"));
}

}  // namespace
}  // namespace stratagem::data_parallel::data_parallel_test
