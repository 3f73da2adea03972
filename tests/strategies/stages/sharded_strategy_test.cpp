#include "strategies/stages/staged_strategy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/oracle/oracle.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/distributed/same_calls.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::sharded_strategy_test {
namespace {

using schedules::Action;
using schedules::ActionKind;

struct Case {
  std::string strategy;
  strategies::Spread spread = {.replicas = 2};
  strategies::StrategyOptions options = {.split_size = 2};
  std::string model = "gpt-tiny";
  std::int64_t batch = 4;
  models::OptimizerOptions optimizer = {.learning_rate = 0.1, .momentum = 0.9};
};

std::ostream& operator<<(std::ostream& stream, const Case& of) {
  return stream << of.strategy << " of " << of.model << ", " << of.spread.replicas << "x"
                << of.spread.pipeline_ranks << "x" << of.spread.tensor_ranks << ", "
                << of.spread.shard_groups << " groups of replicas, " << of.spread.devices_per_rank
                << " devices a rank, shard " << of.options.shard.name() << ", "
                << of.options.schedule << ", accumulation " << of.options.accumulation_steps
                << ", prefetch " << of.options.prefetch << ", reshard "
                << of.options.reshard_after_forward << ", groups of " << of.options.shard_group_mb
                << " MiB";
}

models::WorkloadOptions workload_of(const Case& of) {
  models::WorkloadOptions options = strategies::small_workload(of.model, of.batch);
  options.optimizer = of.optimizer;
  return options;
}

using Made =
    std::function<std::unique_ptr<strategies::Strategy>(const strategies::StrategyContext&)>;

/// How a rank's strategy differs from the oracle, or its counts from its costs; empty: not at all.
std::vector<std::string> differences(Case of, const Made& make) {
  of.spread.sharded = true;
  std::vector<std::string> found(static_cast<std::size_t>(of.spread.ranks()));
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    std::string& own = found[static_cast<std::size_t>(ranks.info().rank)];
    strategies::RankTraining training(ranks, workload_of(of), of.spread);
    training.strategy = make(training.rank_context(of.options));
    const auto verification = bench::compare_with_oracle(*training.strategy, training.workload);
    if (!verification.passed) own = verification.message;
    const auto batch = training.workload.make_batch(0);
    training.reset_counts();
    training.strategy->step(batch);
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    const strategies::Costs costs = training.strategy->costs(batch.size());
    own += distributed::difference_from_costs(training.counts(), costs);
    distributed::require_same_calls(ranks, costs.calls);
  });
  return found;
}

std::vector<std::string> differences(const Case& of) {
  return differences(of, [&](const auto& context) {
    return strategies::find_strategy(of.strategy).make(context);
  });
}

void expect_no_differences(const Case& of) {
  for (const std::string& difference : differences(of)) EXPECT_EQ(difference, "");
}

void expect_equal(const std::vector<Case>& cases) {
  for (const Case& of : cases) {
    SCOPED_TRACE(testing::Message() << of);
    strategies::over_both_backends(of, expect_no_differences);
  }
}

/// For cases beside those that both backends have.
void expect_equal_in_order(const std::vector<Case>& cases) {
  for (const Case& of : cases) {
    SCOPED_TRACE(testing::Message() << of);
    strategies::over_the_backend_in_order(of, expect_no_differences);
  }
}

TEST(Zero, EqualsOneDevice) {
  std::vector<Case> cases;
  std::vector<Case> both;
  for (const char* zero : {"zero1", "zero2", "zero3"}) {
    cases.push_back({.strategy = zero});
    both.push_back({.strategy = zero, .spread = {.replicas = 3}, .model = "mlp", .batch = 7});
    both.push_back({.strategy = zero, .options = {.accumulation_steps = 2}, .model = "mlp"});
    cases.push_back({.strategy = zero, .options = {.accumulation_steps = 2}, .model = "resnet18"});
  }
  expect_equal(both);
  expect_equal_in_order(cases);
}

TEST(Zero, WithAnyGroupsAndAnyWindowEqualsOneDevice) {
  std::vector<Case> cases;
  for (const strategies::StrategyOptions& options : std::vector<strategies::StrategyOptions>{
           {.shard_group_mb = 1000},
           {.shard_group_mb = 0.01, .prefetch = 2},
           {.prefetch = 0},
           {.accumulation_steps = 3, .prefetch = 3},
           {.reshard_after_forward = false},
           {.accumulation_steps = 2, .reshard_after_forward = false, .prefetch = 100}}) {
    cases.push_back({.strategy = "zero3", .options = options, .batch = 6});
  }
  cases.push_back({.strategy = "zero3", .spread = {.replicas = 4}, .model = "toy", .batch = 8});
  expect_equal_in_order(cases);
}

TEST(Zero, WithEveryOptimizerEqualsOneDevice) {
  using Kind = models::OptimizerOptions::Kind;
  const models::OptimizerOptions plain{.learning_rate = 0.1};
  const models::OptimizerOptions momentum{
      .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  const models::OptimizerOptions clipped{.learning_rate = 0.1, .momentum = 0.9, .clip_norm = 1e-3};
  const models::OptimizerOptions adam{.kind = Kind::adam};
  const models::OptimizerOptions adamw{.kind = Kind::adamw, .weight_decay = 0.1};
  const models::OptimizerOptions clipped_adamw{.kind = Kind::adamw, .clip_norm = 1e-3};
  std::vector<Case> cases;
  for (const auto& each : {plain, momentum, clipped, adam, adamw, clipped_adamw}) {
    cases.push_back({.strategy = "zero3", .optimizer = each});
  }
  // All of them update the same shards; the gradients come by another way.
  for (const auto& each : {momentum, clipped_adamw}) {
    cases.push_back({.strategy = "zero1", .optimizer = each});
  }
  for (const auto& each : {adam, clipped}) {
    cases.push_back({.strategy = "zero2", .optimizer = each});
  }
  expect_equal_in_order(cases);
}

TEST(Zero, InPipelinesEqualsOneDevice) {
  std::vector<Case> cases;
  for (const std::string& schedule : schedules::schedule_names()) {
    strategies::StrategyOptions options{.split_size = 1, .schedule = schedule};
    strategies::StrategyOptions of_images = options;
    if (schedules::find_schedule(schedule).stages_per_device != 1) {
      options.cut = {"blocks.0", "blocks.1", "head"};
      of_images.cut = {"layer1.0", "layer2.0", "layer3.0"};
    }
    const strategies::Spread ranks{.replicas = 2, .pipeline_ranks = 2};
    const strategies::Spread devices{.replicas = 2, .devices_per_rank = 2};
    cases.push_back({.strategy = "zero3", .spread = ranks, .options = options});
    // The one in the order of its micro-batches, and the one with two stages on a device.
    if (schedule != "1f1b" && schedule != "zb_v") continue;
    cases.push_back(
        {.strategy = "zero3", .spread = devices, .options = of_images, .model = "resnet18"});
    for (const char* zero : {"zero1", "zero2"}) {
      cases.push_back({.strategy = zero, .spread = ranks, .options = options});
    }
  }
  expect_equal_in_order(cases);
  expect_equal({{.strategy = "zero3",
                 .spread = {.replicas = 2, .pipeline_ranks = 2},
                 .options = {.split_size = 1, .schedule = "zb_h1"}}});
}

TEST(Zero, BesideSharedLayersEqualsOneDevice) {
  std::vector<Case> cases;
  const models::OptimizerOptions clipped{.learning_rate = 0.1, .momentum = 0.9, .clip_norm = 1e-3};
  struct Sharding {
    const char* strategy;
    schedules::Sharded shard;
  };
  for (const auto& [strategy, shard] :
       {Sharding{"tensor_parallel", "optimizer"}, Sharding{"sequence_parallel", "gradients"},
        Sharding{"tensor_parallel", "parameters"}, Sharding{"sequence_parallel", "parameters"}}) {
    cases.push_back({.strategy = strategy,
                     .spread = {.replicas = 2, .tensor_ranks = 2},
                     .options = {.split_size = 1, .shard = shard},
                     .optimizer = clipped});
    cases.push_back(cases.back());  // with copies of key and value heads
    cases.back().model = "llama-tiny";
    cases.back().spread.tensor_ranks = 4;
  }
  cases.push_back({.strategy = "sequence_parallel",
                   .spread = {.replicas = 2, .pipeline_ranks = 2, .tensor_ranks = 2},
                   .options = {.split_size = 1, .shard = "parameters"},
                   .optimizer = clipped});
  expect_equal_in_order(cases);
  expect_equal({{.strategy = "ddp", .options = {.shard = "parameters"}},
                {.strategy = "tensor_parallel",
                 .spread = {.replicas = 2, .tensor_ranks = 2},
                 .options = {.split_size = 1, .shard = "gradients"}}});
}

TEST(Zero, OverGroupsOfReplicasEqualsOneDevice) {
  const strategies::Spread groups{.replicas = 4, .shard_groups = 2};
  const models::OptimizerOptions clipped{.kind = models::OptimizerOptions::Kind::adamw,
                                         .clip_norm = 1e-3};
  std::vector<Case> cases;
  for (const char* zero : {"zero1", "zero2", "zero3"}) {
    cases.push_back({.strategy = zero, .spread = groups});
    cases.push_back({.strategy = zero,
                     .spread = groups,
                     .options = {.accumulation_steps = 2},
                     .batch = 8,
                     .optimizer = clipped});
  }
  cases.push_back({.strategy = "zero1",
                   .spread = groups,
                   .options = {.accumulation_steps = 3},
                   .model = "mlp",
                   .batch = 13});
  cases.push_back({.strategy = "zero3", .spread = groups, .model = "resnet18", .batch = 8});
  cases.push_back({.strategy = "zero2",
                   .spread = {.replicas = 6, .shard_groups = 3},
                   .model = "toy",
                   .batch = 6});
  cases.push_back({.strategy = "zero3",
                   .spread = {.replicas = 4, .pipeline_ranks = 2, .shard_groups = 2},
                   .options = {.split_size = 1, .schedule = "zb_h1"},
                   .batch = 8,
                   .optimizer = clipped});
  cases.push_back({.strategy = "sequence_parallel",
                   .spread = {.replicas = 4, .tensor_ranks = 2, .shard_groups = 2},
                   .options = {.split_size = 1, .shard = "gradients"},
                   .optimizer = clipped});
  cases.push_back({.strategy = "zero2",
                   .spread = {.replicas = 4, .devices_per_rank = 2, .shard_groups = 2},
                   .options = {.split_size = 1}});
  expect_equal_in_order(cases);
  expect_equal({{.strategy = "zero3", .spread = groups, .model = "mlp", .batch = 8}});
}

/// The state after some steps of what trains in `dtype`.
strategies::StateDictionary state_after_steps(Case of, at::ScalarType dtype) {
  strategies::StateDictionary state;
  of.spread.sharded = true;
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    models::WorkloadOptions options = workload_of(of);
    options.dtype = dtype;
    strategies::RankTraining training(ranks, options, of.spread);
    training.strategy =
        strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
    for (std::uint64_t step = 0; step < 3; ++step) {
      training.strategy->step(training.workload.make_batch(step));
    }
    auto own = training.strategy->state();
    if (ranks.info().rank == 0) state = std::move(own);
  });
  return state;
}

TEST(Zero, StagesAreBitForBitEqualToEachOtherAndToReplicas) {
  for (const char* model : {"gpt-tiny", "resnet18"}) {
    SCOPED_TRACE(model);
    const auto of = [&](const char* strategy, strategies::StrategyOptions options = {}) {
      return state_after_steps({.strategy = strategy, .options = options, .model = model},
                               at::kFloat);
    };
    const auto zero1 = of("zero1");
    EXPECT_EQ(strategies::largest_difference(zero1, of("zero2")), 0);
    EXPECT_EQ(strategies::largest_difference(zero1, of("zero3")), 0);
    EXPECT_EQ(strategies::largest_difference(
                  zero1, of("zero3", {.reshard_after_forward = false, .prefetch = 3})),
              0);
    EXPECT_EQ(strategies::largest_difference(zero1, of("zero3", {.shard_group_mb = 0.05})), 0);
    for (const auto& [name, of_replicas] : of("ddp")) {
      // Replicas update each parameter by itself. The ten biases of resnet18's head fill no vector,
      // and the fused kernel rounds what is left over otherwise: once a step, of less than 1/4.
      const double rounded = name.ends_with("fc.bias") ? 3 * 0x1p-26 : 0;
      EXPECT_LE((zero1.at(name) - of_replicas).abs().max().item<double>(), rounded) << name;
    }
  }
}

TEST(Zero, StagesOverGroupsOfReplicasAreBitForBitEqualToEachOther) {
  for (const char* model : {"gpt-tiny", "resnet18"}) {
    SCOPED_TRACE(model);
    const auto of = [&](const char* strategy, strategies::StrategyOptions options = {}) {
      return state_after_steps({.strategy = strategy,
                                .spread = {.replicas = 4, .shard_groups = 2},
                                .options = options,
                                .model = model,
                                .batch = 8},
                               at::kFloat);
    };
    const auto zero1 = of("zero1");
    EXPECT_EQ(strategies::largest_difference(zero1, of("zero2")), 0);
    EXPECT_EQ(strategies::largest_difference(zero1, of("zero3")), 0);
    EXPECT_EQ(strategies::largest_difference(
                  zero1, of("zero3", {.reshard_after_forward = false, .prefetch = 3})),
              0);
  }
}

/// zero1, zero2 or zero3 of one stage, as a class that tests can break.
class Zero : public StagedStrategy {
 public:
  explicit Zero(const strategies::StrategyContext& context)
      : StagedStrategy(context, strategies::planner_of_replicas(context)) {}

 protected:
  void zero_gradients_of(int index) {
    const at::NoGradGuard no_gradient;
    for (const auto& [name, tensor] : models::parameters(stage(index).layers())) {
      tensor.grad().zero_();
    }
  }
};

/// What the other ranks have updated is gathered before the first step alone.
class GathersOnce : public Zero {
 public:
  using Zero::Zero;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    const bool gathers =
        action.kind == ActionKind::unshard || action.kind == ActionKind::unshard_wait;
    if (gathers && gathered_.contains(action)) return;
    gathered_.insert(action);
    Zero::perform(action, step);
  }

 private:
  std::set<Action> gathered_;
};

/// One rank adds nothing to the gradients of one group.
class DropsAGroup : public Zero {
 public:
  using Zero::Zero;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action.kind == ActionKind::reduce_scatter && action.stage == 1 &&
        groups().data.front()->rank() == 1) {
      zero_gradients_of(1);
    }
    Zero::perform(action, step);
  }
};

/// The gradients of the first micro-batch alone are summed (InfiniTrain's pull request 213).
class ScattersTheFirstMicroBatch : public Zero {
 public:
  using Zero::Zero;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action.kind == ActionKind::reduce_scatter && action.micro_batch > 0) {
      zero_gradients_of(action.stage);
    }
    Zero::perform(action, step);
  }
};

/// Every rank's part of the norm is counted twice.
class CountsTheNormTwice : public Zero {
 public:
  using Zero::Zero;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    Zero::perform(action, step);
    if (action.kind != ActionKind::gradient_norm) return;
    step.norms.of_stage[static_cast<std::size_t>(action.stage)].mul_(2);
  }
};

/// Parameters are freed while their backward pass still needs them.
class FreesTooEarly : public Zero {
 public:
  using Zero::Zero;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action.kind == ActionKind::backward) group(action.stage).reshard();
    Zero::perform(action, step);
  }
};

/// A group's gradients are those of its own shards alone.
class ForgetsTheCopies : public Zero {
 public:
  using Zero::Zero;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action.stage == 1 && schedules::is_of_copies(action.kind)) return;
    Zero::perform(action, step);
  }
};

template <class Broken>
bool is_caught(const Case& of) {
  const auto found =
      differences(of, [](const auto& context) { return std::make_unique<Broken>(context); });
  return std::ranges::any_of(found, [](const std::string& each) { return !each.empty(); });
}

TEST(Zero, MistakesAreCaught) {
  const strategies::StrategyOptions optimizer{.shard = "optimizer"};
  const strategies::StrategyOptions gradients{.accumulation_steps = 2, .shard = "gradients"};
  const models::OptimizerOptions clipped{.learning_rate = 0.1, .clip_norm = 1e-3};
  EXPECT_FALSE(is_caught<Zero>({.strategy = "broken", .options = optimizer}));
  EXPECT_FALSE(is_caught<Zero>({.strategy = "broken", .options = gradients, .optimizer = clipped}));
  EXPECT_TRUE(is_caught<GathersOnce>({.strategy = "broken", .options = optimizer}));
  EXPECT_TRUE(is_caught<DropsAGroup>({.strategy = "broken", .options = gradients}));
  EXPECT_TRUE(is_caught<ScattersTheFirstMicroBatch>({.strategy = "broken", .options = gradients}));
  EXPECT_TRUE(is_caught<CountsTheNormTwice>(
      {.strategy = "broken", .options = gradients, .optimizer = clipped}));
  const strategies::Spread groups{.replicas = 4, .shard_groups = 2};
  EXPECT_FALSE(is_caught<Zero>({.strategy = "broken", .spread = groups, .options = optimizer}));
}

TEST(Zero, AForgottenSumOverCopiesIsCaughtByTheOracleToo) {
  const Case of{.strategy = "broken",
                .spread = {.replicas = 4, .shard_groups = 2},
                .options = {.shard = "optimizer"}};
  const auto found = differences(
      of, [](const auto& context) { return std::make_unique<ForgetsTheCopies>(context); });
  EXPECT_THAT(found, testing::Contains(testing::HasSubstr("blocks.0")));
  EXPECT_THAT(found, testing::Each(testing::HasSubstr("all_reduce: 4 calls"))) << "the counts do";
}

TEST(Zero, ParametersThatWereFreedCannotBeReadByMistake) {
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    const Case of{.strategy = "broken",
                  .spread = {.replicas = 2, .sharded = true},
                  .options = {.shard = "parameters"}};
    strategies::RankTraining training(ranks, workload_of(of), of.spread);
    FreesTooEarly broken(training.rank_context(of.options));
    broken.step(training.workload.make_batch(0));
    EXPECT_ANY_THROW(runtime::synchronize_all(training.group.devices, std::chrono::seconds(20)));
  });
}

}  // namespace
}  // namespace stratagem::stages::sharded_strategy_test
