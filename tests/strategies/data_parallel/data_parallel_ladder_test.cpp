// From nn.DataParallel to DDP, an option at a time: updates, what moves, and mistakes that
// verification sees.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/oracle/oracle.h"
#include "strategies/data_parallel/data_parallel_strategy.h"
#include "strategies/data_parallel/device_balance.h"
#include "strategies/data_parallel/layer_buckets.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/stages/partition.h"
#include "tests/strategies/training.h"

namespace stratagem::data_parallel::data_parallel_ladder_test {
namespace {

using schedules::Action;
using schedules::ActionKind;
using strategies::small_workload;
using strategies::StrategyOptions;
using strategies::Training;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// So small that every layer with parameters is a bucket.
constexpr double a_bucket_a_layer = 1e-6;

/// The rungs behind DataParallel, and options that stand alone.
std::vector<StrategyOptions> ladder() {
  StrategyOptions options{.bucket_mb = a_bucket_a_layer};
  std::vector<StrategyOptions> all;
  options.loss_on = "replicas";
  all.push_back(options);
  options.replicate = "kept";
  all.push_back(options);
  options.reduce = "overlapped";
  all.push_back(options);
  options.update = "everywhere";
  all.push_back(options);
  options.scatter = "host";
  all.push_back(options);
  all.push_back({.bucket_mb = a_bucket_a_layer, .replicate = "kept"});
  all.push_back({.bucket_mb = a_bucket_a_layer, .reduce = "overlapped"});
  all.push_back({.bucket_mb = a_bucket_a_layer, .replicate = "kept", .update = "everywhere"});
  return all;
}

std::string name_of(const StrategyOptions& options) {
  return fmt::format("{} {} {} {}", options.loss_on, options.replicate, options.reduce,
                     options.update);
}

models::WorkloadOptions workload_of(const std::string& model, std::int64_t batch) {
  models::WorkloadOptions options = small_workload(model, batch);
  if (model == "gpt-tiny") {
    options.loss = models::Loss::cross_entropy;
    options.classes = 0;
  }
  if (model == "linear") {
    options.width = 1;
    options.image_size = 0;
  }
  return options;
}

TEST(LayerBuckets, HoldWholeLayersAndBeginAtOnesWithParameters) {
  const models::Workload workload(small_workload("toy", 2));
  const models::Model model = workload.make_model();
  ASSERT_EQ(model.layers.size(), 3u);  // linear, ReLU, linear
  EXPECT_THAT(stages::bucket_boundaries(model.layers, 1), ElementsAre(2));
  EXPECT_THAT(stages::bucket_boundaries(model.layers, 1e6), ElementsAre());
}

TEST(LayerBuckets, ANarrowModelHasAsManyAsTheWholeOne) {
  const StrategyOptions options{.bucket_mb = 4, .replicate = "kept", .update = "everywhere"};
  models::WorkloadOptions workload = small_workload("resnet18", 2);
  std::vector<std::size_t> segments;
  for (const double width : {1.0, 0.125}) {
    workload.width = width;
    const models::Model model = models::Workload(workload).make_model();
    const Segments found = segments_of(model.layers, options, 2, width);
    EXPECT_EQ(found.owners.size(), found.boundaries.size() + 1);
    EXPECT_THAT(found.owners, ::testing::Contains(0));
    EXPECT_THAT(found.owners, ::testing::Contains(1));
    segments.push_back(found.owners.size());
  }
  EXPECT_GT(segments[1], 3u);
  EXPECT_NEAR(static_cast<double>(segments[0]), static_cast<double>(segments[1]), 2);
}

TEST(LayerBuckets, ADeviceUpdatesAboutItsShare) {
  EXPECT_THAT(owners_of({8, 18, 18, 24, 25, 5}, 2), ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_THAT(owners_of({3}, 4), ElementsAre(0));
}

TEST(DeviceBalance, NamesADeviceWithLessThanThreeQuartersOfAnother) {
  const auto of = [](double memory, double cores) {
    return imbalance_of({{"cuda:0", 80, 100}, {"cuda:1", memory, cores}});
  };
  EXPECT_EQ(of(60, 75), "");
  EXPECT_EQ(of(32, 100),
            "cuda:1 has 40% of the memory of cuda:0 and slows down each step; "
            "leave it out with --device-ids");
  EXPECT_THAT(of(80, 60), HasSubstr("cuda:1 has 60% of the cores of cuda:0"));
  EXPECT_THAT(of(80, 200), HasSubstr("cuda:0 has 50% of the cores of cuda:1"));
  EXPECT_EQ(imbalance_of({{"cuda:0", 80, 100}}), "");
}

TEST(DataParallelLadder, EveryRungEqualsOneDevice) {
  for (const char* model : {"toy", "linear", "mlp", "gpt-tiny", "resnet18"}) {
    const bool large = model == std::string("gpt-tiny") || model == std::string("resnet18");
    for (const int devices : large ? std::vector{2, 3} : std::vector{1, 2, 3, 4}) {
      Training training(workload_of(model, 9), devices);
      for (const StrategyOptions& options : ladder()) {
        const auto result =
            bench::compare_with_oracle(training.make("data_parallel", options), training.workload);
        EXPECT_TRUE(result.passed)
            << model << " on " << devices << ", " << name_of(options) << ": " << result.message;
      }
    }
  }
}

TEST(DataParallelLadder, EveryRungMovesWhatTheFormulasSay) {
  for (const char* model : {"resnet18", "gpt-tiny"}) {
    for (const StrategyOptions& options : ladder()) {
      for (const std::int64_t samples : {7, 1}) {
        Training training(workload_of(model, 7), 3);
        strategies::Strategy& strategy = training.make("data_parallel", options);
        const models::Batch batch = training.workload.make_batch(0).slice(0, samples);
        strategy.step(batch);  // makes the copies that are kept
        strategy.state();
        strategy.take_counts();
        strategy.step(batch);
        strategy.state();
        EXPECT_EQ(
            distributed::difference_from_costs(strategy.take_counts(), strategy.costs(samples)), "")
            << model << " " << name_of(options) << ", " << samples;
      }
    }
  }
}

/// Batches of other sizes use fewer devices, whose copies are then old; and steps are enqueued
/// without waiting.
TEST(DataParallelLadder, BatchesOfChangingSizesAreThoseOfOneDevice) {
  for (const StrategyOptions& options : ladder()) {
    Training several(workload_of("toy", 8), 4);
    Training one(workload_of("toy", 8), 1);
    strategies::Strategy& parallel = several.make("data_parallel", options);
    strategies::Strategy& single = one.make("single");
    for (int step = 0; step < 60; ++step) {
      const int samples = step % 3 == 0 ? 8 : 1 + step % 8;
      const models::Batch batch =
          several.workload.make_batch(static_cast<std::uint64_t>(step)).slice(0, samples);
      parallel.step(batch);
      single.step(batch);
    }
    EXPECT_LT(strategies::largest_difference(parallel.state(), single.state()), 1e-12)
        << name_of(options);
    const models::Batch batch = several.workload.make_batch(99);
    const auto own = parallel.evaluate(batch);
    EXPECT_NEAR(own.loss, single.evaluate(batch).loss, 1e-12) << name_of(options);
    EXPECT_EQ(own.correct, single.evaluate(batch).correct) << name_of(options);
  }
}

TEST(DataParallelLadder, OneDeviceIsSingleBitForBit) {
  for (const StrategyOptions& options : ladder()) {
    Training one(small_workload("mlp", 4), 1);
    Training other(small_workload("mlp", 4), 1);
    strategies::Strategy& single = one.make("single");
    strategies::Strategy& parallel = other.make("data_parallel", options);
    for (std::uint64_t step = 0; step < 3; ++step) {
      single.step(one.workload.make_batch(step));
      parallel.step(one.workload.make_batch(step));
    }
    EXPECT_EQ(strategies::largest_difference(single.state(), parallel.state()), 0);
  }
}

TEST(DataParallelLadder, InputsThatStayAreNotScatteredAgain) {
  Training training(small_workload("toy", 6), 3);
  strategies::Strategy& strategy =
      training.make("data_parallel", {.inputs = "device", .loss_on = "replicas"});
  for (int step = 0; step < 2; ++step) {
    strategy.take_counts();
    strategy.step(training.workload.make_batch(0));
    strategy.state();
  }
  EXPECT_EQ(distributed::difference_from_costs(strategy.take_counts(), strategy.costs(6)), "");
}

std::string refusal_of(const StrategyOptions& options) {
  try {
    check_options(options, 2);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(DataParallelLadder, OptionsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(refusal_of({.output_device = 1, .loss_on = "replicas"}),
            "--output-device 1: --loss-on replicas gathers no outputs; leave one of them out");
  EXPECT_EQ(refusal_of({.update = "everywhere"}),
            "--update everywhere: needs --replicate kept, because no device has all updated "
            "parameters");
  EXPECT_EQ(refusal_of({.replicate = "kept", .update = "everywhere"}), "");
}

/// Leaves out some actions.
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

/// What verification says of the last rung when one action is left out.
std::string message_without(const Action& action) {
  Training training(small_workload("resnet18", 6), 2);
  Broken strategy(training.context({.bucket_mb = a_bucket_a_layer,
                                    .loss_on = "replicas",
                                    .replicate = "kept",
                                    .reduce = "overlapped",
                                    .update = "everywhere"}),
                  [&](const Action& other) { return other == action; });
  return bench::compare_with_oracle(strategy, training.workload).message;
}

/// Verification hands every step the oracle's state, so that old copies show in its evaluation.
TEST(DataParallelLadder, VerificationSeesABucketThatWasNotSummedOrACopyThatIsOld) {
  Training training(small_workload("resnet18", 6), 2);
  strategies::Strategy& strategy = training.make("data_parallel", {.bucket_mb = a_bucket_a_layer,
                                                                   .loss_on = "replicas",
                                                                   .replicate = "kept",
                                                                   .reduce = "overlapped",
                                                                   .update = "everywhere"});
  const auto pending = strategy.step(training.workload.make_batch(0));
  strategy.state();
  int sums = 0;
  for (const auto& entry : pending->execution()) {
    const bool copies = entry.action.kind == ActionKind::replicate && entry.device == 0;
    if (entry.action.kind != ActionKind::sum_gradients && !copies) continue;
    if (sums++ % 5 > 0) continue;  // a few of either kind
    EXPECT_THAT(message_without(entry.action), HasSubstr("differs from the oracle"))
        << to_string(entry.action);
  }
  EXPECT_GT(sums, 10);
}

}  // namespace
}  // namespace stratagem::data_parallel::data_parallel_ladder_test
