// Gradients clipped by the norm of the whole model, however it is spread: each element counts once.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>

#include "bench/oracle/oracle.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/distributed/same_calls.h"
#include "strategies/registry.h"
#include "strategies/stages/partition.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::presets::clipping_test {
namespace {

struct Case {
  std::string strategy;
  strategies::Spread spread = {};
  std::string schedule = "1f1b";
  std::string model = "gpt-tiny";
};

std::ostream& operator<<(std::ostream& stream, const Case& of) {
  return stream << of.strategy << " of " << of.model << ", " << of.schedule << ", "
                << of.spread.replicas << "x" << of.spread.pipeline_ranks << "x"
                << of.spread.tensor_ranks << ", " << of.spread.devices_per_rank
                << " devices a rank";
}

models::WorkloadOptions clipped(const std::string& model) {
  models::WorkloadOptions options = strategies::small_workload(model, 4);
  options.optimizer.clip_norm = 1e-3;
  return options;
}

struct Found {
  reports::Verdict verification;
  std::string costs;  // how counts differ from them
};

void count_a_step(strategies::RankTraining& training, std::string& difference) {
  const auto batch = training.workload.make_batch(0);
  for (int step = 0; step < 2; ++step) {
    training.reset_counts();
    training.strategy->step(batch);
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
  }
  difference =
      distributed::difference_from_costs(training.counts(), training.strategy->costs(batch.size()));
}

using Maker =
    std::function<std::unique_ptr<strategies::Strategy>(const strategies::StrategyContext&)>;

/// [rank]. `make` makes another strategy than the case's.
std::vector<Found> verify(const Case& of, const Maker& make = {}) {
  std::vector<Found> found(static_cast<std::size_t>(of.spread.ranks()));
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    Found& own = found[static_cast<std::size_t>(ranks.info().rank)];
    strategies::RankTraining training(ranks, clipped(of.model), of.spread);
    const auto context = training.rank_context({.split_size = 2, .schedule = of.schedule});
    training.strategy = (make ? make : strategies::find_strategy(of.strategy).make)(context);
    own.verification = bench::compare_with_oracle(*training.strategy, training.workload);
    count_a_step(training, own.costs);
    distributed::require_same_calls(ranks, training.strategy->costs(4).calls);
  });
  return found;
}

TEST(Clipping, EqualsOneDeviceOverEveryMesh) {
  for (const Case& of : std::vector<Case>{
           {"single"},
           {"model_parallel", {.devices_per_rank = 2}},
           {"pipeline", {.devices_per_rank = 2}, "zb_h1"},
           {"pipeline", {.pipeline_ranks = 2}},
           {"pipeline", {.pipeline_ranks = 2}, "zb_v"},
           {"ddp", {.replicas = 2}},
           {"ddp_model_parallel", {.replicas = 2, .devices_per_rank = 2}},
           {"ddp_model_parallel", {.replicas = 2, .pipeline_ranks = 2}},
           {"tensor_parallel", {.tensor_ranks = 2}},
           {"tensor_parallel", {.pipeline_ranks = 2, .tensor_ranks = 2}},
           {"sequence_parallel", {.tensor_ranks = 2}},
           {"sequence_parallel", {.replicas = 2, .pipeline_ranks = 2, .tensor_ranks = 2}},
           {"ddp", {.replicas = 2}, "1f1b", "resnet18"}}) {
    SCOPED_TRACE(testing::Message() << of);
    strategies::over_the_backend_in_order(of, [](const Case& each) {
      for (const Found& rank : verify(each)) {
        EXPECT_TRUE(rank.verification.passed) << rank.verification.message;
        EXPECT_EQ(rank.costs, "");
      }
    });
  }
}

TEST(Clipping, DataParallelClipsTheSumOfItsReplicas) {
  const strategies::StrategyOptions shares = {.bucket_mb = 0.01,
                                              .loss_on = "replicas",
                                              .replicate = "kept",
                                              .reduce = "overlapped",
                                              .update = "everywhere"};
  for (const int devices : {1, 3}) {
    for (const strategies::StrategyOptions& options : {strategies::StrategyOptions(), shares}) {
      SCOPED_TRACE(testing::Message() << devices << " devices, update " << options.update);
      strategies::Training training(clipped("mlp"), devices);
      const auto verification =
          bench::compare_with_oracle(training.make("data_parallel", options), training.workload);
      EXPECT_TRUE(verification.passed) << verification.message;
    }
  }
}

/// How often the host reads a number of a tensor's, in the whole process.
std::atomic<int> host_reads = 0;

std::unique_ptr<at::ObserverContext> note_host_read(const at::RecordFunction& call) {
  if (std::string_view(call.name()) == "aten::_local_scalar_dense") ++host_reads;
  return nullptr;
}

// Each of n stages once read the norms of all n.
TEST(Clipping, TheHostReadsTheNormOnceAStep) {
  const strategies::StrategyOptions everywhere = {.split_size = 2,
                                                  .bucket_mb = 0.01,
                                                  .loss_on = "replicas",
                                                  .replicate = "kept",
                                                  .reduce = "overlapped",
                                                  .update = "everywhere"};
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&note_host_read).scopes({at::RecordScope::FUNCTION}));
  for (const bool mixed : {false, true}) {
    for (const Case& of : std::vector<Case>{{"single"},
                                            {"pipeline", {.devices_per_rank = 2}},
                                            {"pipeline", {.pipeline_ranks = 2}},
                                            {"data_parallel", {.devices_per_rank = 3}}}) {
      if (mixed && of.strategy == "data_parallel") continue;
      SCOPED_TRACE(testing::Message() << of << (mixed ? ", mixed" : ""));
      models::WorkloadOptions options = clipped(of.model);
      options.mixed = mixed;
      if (mixed) options.loss_scale = 8;
      runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
        strategies::RankTraining training(ranks, options, of.spread);
        training.strategy =
            strategies::find_strategy(of.strategy)
                .make(training.rank_context(of.strategy == "data_parallel"
                                                ? everywhere
                                                : strategies::StrategyOptions{.split_size = 2}));
        const auto batch = training.workload.make_batch(0);
        training.strategy->step(batch);
        runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
        training.all->barrier();
        host_reads = 0;
        training.all->barrier();
        const auto step = training.strategy->step(batch);
        runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
        EXPECT_GT(step->gradient_norm(), 0);
      });
      EXPECT_EQ(host_reads, of.spread.ranks());
    }
  }
  at::removeCallback(handle);
}

/// Each rank clips by the norm of the gradients that it has.
class SumsNoNorms : public stages::StagedStrategy {
 public:
  using StagedStrategy::StagedStrategy;
  ~SumsNoNorms() override { come_to_rest(); }

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override {
    if (action.kind != schedules::ActionKind::norm_sum) StagedStrategy::perform(action, step);
  }
};

TEST(Clipping, ByThePartsThatARankHasIsSeen) {
  for (const Case& of : std::vector<Case>{{"tensor_parallel", {.tensor_ranks = 2}},
                                          {"pipeline", {.pipeline_ranks = 2}}}) {
    SCOPED_TRACE(testing::Message() << of);
    const auto make = [&of](const strategies::StrategyContext& context) {
      const strategies::PlanRequest request = stages::plan_request(context);
      const auto outline = strategies::find_strategy(of.strategy).outline(request);
      return std::make_unique<SumsNoNorms>(context, strategies::planner_of(context, outline));
    };
    for (const Found& rank : verify(of, make)) EXPECT_FALSE(rank.verification.passed);
  }
}

TEST(Clipping, TellsTheNormBeforeItWasClipped) {
  strategies::Training training(clipped("toy"), 2);
  strategies::Strategy& strategy = training.make("model_parallel");
  const auto step = strategy.step(training.workload.make_batch(0));
  const strategies::StateDictionary after = strategy.state();
  double squares = 0;
  for (const auto& [name, tensor] : after) {
    if (name.starts_with("gradient.")) squares += tensor.square().sum().item<double>();
  }
  EXPECT_GT(step->gradient_norm(), 1e-2);
  EXPECT_NEAR(std::sqrt(squares), 1e-3, 1e-6);
}

TEST(Clipping, GradientsThatAreNotFiniteChangeNothing) {
  strategies::Training training(clipped("toy"), 2);
  strategies::Strategy& strategy = training.make("model_parallel");
  const strategies::StateDictionary before = strategy.state();
  models::Batch batch = training.workload.make_batch(0);
  batch.inputs = batch.inputs.clone();
  batch.inputs.flatten()[0] = std::numeric_limits<double>::infinity();
  const auto step = strategy.step(batch);
  strategy.state();
  EXPECT_FALSE(std::isfinite(step->gradient_norm()));
  const auto next = strategy.step(training.workload.make_batch(0));
  const strategies::StateDictionary after = strategy.state();
  EXPECT_FALSE(std::isfinite(next->gradient_norm()));
  for (const auto& [name, tensor] : before) {
    if (!name.starts_with("gradient.")) {
      EXPECT_TRUE(at::equal(tensor, after.at(name))) << name;
    }
  }
}

}  // namespace
}  // namespace stratagem::presets::clipping_test
