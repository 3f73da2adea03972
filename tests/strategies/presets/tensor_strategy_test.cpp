// tensor_parallel and sequence_parallel: equal to one device, over ranks, stages and replicas, with
// the exchanges that their costs say.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "bench/oracle/oracle.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/registry.h"
#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::presets::tensor_strategy_test {
namespace {

using distributed::RankContext;
using tensor_parallel::Layout;

struct Case {
  std::string model = "gpt-tiny";
  std::string strategy = "tensor_parallel";
  std::string schedule = "1f1b";
  strategies::Spread spread = {.tensor_ranks = 2};
  bool async_reduce = true;
  bool keep_gathered = false;
  distributed::ReduceScatter reduce_scatter = "exchange";
  std::int64_t virtual_stages = 1;
  std::int64_t batch = 4;
  std::int64_t classes = 0;  // 0: the model's own number
};

std::ostream& operator<<(std::ostream& stream, const Case& of) {
  return stream << of.strategy << " of " << of.model << ", " << of.schedule << ", "
                << of.spread.replicas << "x" << of.spread.pipeline_ranks << "x"
                << of.spread.tensor_ranks << ", " << of.virtual_stages << " stages a device, async "
                << of.async_reduce << ", keep gathered " << of.keep_gathered
                << ", reduce-scatter by " << of.reduce_scatter << ", classes " << of.classes
                << (of.spread.in_order ? ", in order" : "");
}

std::unique_ptr<strategies::Strategy> make(const strategies::StrategyContext& context,
                                           const Case& of) {
  return strategies::find_strategy(of.strategy).make(context);
}

strategies::StrategyOptions options_of(const Case& of, const models::Workload& workload) {
  strategies::StrategyOptions options{.split_size = 2,
                                      .schedule = of.schedule,
                                      .virtual_stages = of.virtual_stages,
                                      .async_reduce = of.async_reduce,
                                      .keep_gathered = of.keep_gathered,
                                      .reduce_scatter = of.reduce_scatter};
  if (of.virtual_stages > 1) {
    const int stages = of.spread.stages() * static_cast<int>(of.virtual_stages);
    options.cut = stages::choose_cut(workload, stages, "flops");
  }
  return options;
}

/// The oracle's update, and in the step behind it the exchanges of its costs.
void expect_oracles_update_and_costs(distributed::RankContext& ranks, const Case& of) {
  models::WorkloadOptions workload = strategies::small_workload(of.model, of.batch);
  if (of.classes > 0) workload.classes = of.classes;
  strategies::RankTraining training(ranks, workload, of.spread);
  training.strategy = make(training.rank_context(options_of(of, training.workload)), of);
  const auto verified = bench::compare_with_oracle(*training.strategy, training.workload);
  EXPECT_TRUE(verified.passed) << of << ": " << verified.message;
  training.reset_counts();
  training.strategy->step(training.workload.make_batch(0));
  runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
  EXPECT_EQ(
      distributed::difference_from_costs(training.counts(), training.strategy->costs(of.batch)), "")
      << of;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* strategy : {"tensor_parallel", "sequence_parallel"}) {
    for (const int ranks : {1, 2, 4}) {
      all.push_back({.strategy = strategy, .spread = {.tensor_ranks = ranks}});
    }
    for (const char* schedule : {"1f1b", "zb_h1"}) {
      all.push_back({.strategy = strategy,
                     .schedule = schedule,
                     .spread = {.pipeline_ranks = 2, .tensor_ranks = 2}});
    }
    all.push_back({.strategy = strategy, .spread = {.tensor_ranks = 2}, .async_reduce = false});
    all.push_back({.strategy = strategy, .spread = {.replicas = 2, .tensor_ranks = 2}});
  }
  for (const auto& [strategy, schedule] :
       {std::pair{"tensor_parallel", "interleaved_1f1b"}, std::pair{"sequence_parallel", "zb_v"}}) {
    all.push_back({.strategy = strategy,
                   .schedule = schedule,
                   .spread = {.pipeline_ranks = 2, .tensor_ranks = 2},
                   .virtual_stages = 2});
  }
  for (const auto& [strategy, schedule] :
       {std::pair{"tensor_parallel", "1f1b"}, std::pair{"sequence_parallel", "zb_h1"}}) {
    all.push_back({.strategy = strategy,
                   .schedule = schedule,
                   .spread = {.replicas = 2, .pipeline_ranks = 2, .tensor_ranks = 2}});
  }
  for (const bool async_reduce : {true, false}) {
    all.push_back({.strategy = "sequence_parallel",
                   .schedule = "zb_h1",
                   .spread = {.pipeline_ranks = 2, .tensor_ranks = 2},
                   .async_reduce = async_reduce,
                   .keep_gathered = async_reduce});
  }
  all.push_back({.strategy = "sequence_parallel", .keep_gathered = true});
  all.push_back({.strategy = "sequence_parallel", .reduce_scatter = "library"});
  for (const char* model : {"toy", "mlp"}) {
    all.push_back({.model = model, .spread = {.tensor_ranks = 2}});
    all.push_back({.model = model, .spread = {.pipeline_ranks = 2, .tensor_ranks = 2}});
  }
  all.push_back({.model = "mlp", .spread = {.tensor_ranks = 4}});
  // Uneven shares: 4 heads and 256 tokens over 3 ranks, 257 tokens over 2, 10 hidden features
  // over 4.
  all.push_back({.spread = {.tensor_ranks = 3}});
  all.push_back(
      {.schedule = "zb_h1", .spread = {.pipeline_ranks = 2, .tensor_ranks = 2}, .classes = 257});
  all.push_back({.strategy = "sequence_parallel",
                 .spread = {.replicas = 2, .tensor_ranks = 2},
                 .classes = 257});
  all.push_back({.model = "toy", .spread = {.tensor_ranks = 4}});
  for (const char* strategy : {"tensor_parallel", "sequence_parallel"}) {
    for (const char* schedule : {"1f1b", "zb_h1"}) {
      all.push_back({.model = "llama-tiny",
                     .strategy = strategy,
                     .schedule = schedule,
                     .spread = {.pipeline_ranks = 2, .tensor_ranks = 2}});
    }
    // Two ranks have copies of each key and value head.
    all.push_back({.model = "llama-tiny", .strategy = strategy, .spread = {.tensor_ranks = 4}});
  }
  all.push_back({.model = "llama-tiny",
                 .schedule = "zb_h1",
                 .spread = {.pipeline_ranks = 2, .tensor_ranks = 4}});
  for (const int ranks : {2, 4}) {  // the gradient of its input is all-reduced, too
    all.push_back({.model = "column_linear", .spread = {.tensor_ranks = ranks}});
  }
  return all;
}

/// The strategies that know nothing of tensors, on a GPT. It trains along one curve on every
/// schedule: tests/training/loop/one_curve_test.cpp.
std::vector<Case> cases_without_tensor_ranks() {
  return {{.strategy = "ddp", .spread = {.replicas = 2}},
          {.strategy = "model_parallel", .spread = {.pipeline_ranks = 2}},
          {.strategy = "ddp_model_parallel", .spread = {.replicas = 2, .devices_per_rank = 2}},
          {.strategy = "ddp_model_parallel",
           .schedule = "gpipe",
           .spread = {.replicas = 2, .pipeline_ranks = 2}},
          {.strategy = "pipeline", .schedule = "zb_h1", .spread = {.pipeline_ranks = 2}},
          {.model = "llama-tiny", .strategy = "ddp", .spread = {.replicas = 2}},
          {.model = "llama-tiny",
           .strategy = "pipeline",
           .schedule = "zb_h1",
           .spread = {.pipeline_ranks = 2}},
          {.strategy = "pipeline",
           .schedule = "interleaved_1f1b",
           .spread = {.pipeline_ranks = 2},
           .virtual_stages = 2,
           .batch = 8}};
}

using Expectation = void (*)(distributed::RankContext&, const Case&);

void on_ranks(const Case& of, Expectation expect) {
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) { expect(ranks, of); });
}

TEST(TensorParallel, EqualsOneDeviceAndCommunicatesWhatItsCostsSay) {
  for (const Case& of : cases()) {
    strategies::over_the_backend_in_order(
        of, [](const Case& each) { on_ranks(each, expect_oracles_update_and_costs); });
  }
}

TEST(TensorParallel, EqualsOneDeviceOverGloo) {
  for (const char* strategy : {"tensor_parallel", "sequence_parallel"}) {
    on_ranks({.strategy = strategy}, expect_oracles_update_and_costs);
    on_ranks({.strategy = strategy,
              .schedule = "zb_h1",
              .spread = {.pipeline_ranks = 2, .tensor_ranks = 2}},
             expect_oracles_update_and_costs);
  }
}

TEST(Transformer, EveryStrategyWithoutTensorRanksTrainsIt) {
  for (const Case& of : cases_without_tensor_ranks()) {
    strategies::over_the_backend_in_order(
        of, [](const Case& each) { on_ranks(each, expect_oracles_update_and_costs); });
  }
}

/// A strategy that leaves out what an action does.
class Forgets : public stages::StagedStrategy {
 public:
  Forgets(const strategies::StrategyContext& context, schedules::ActionKind what)
      : stages::StagedStrategy(context,
                               strategies::planner_of(context, {.has_partial_gradients = true}),
                               tensor_parallel::Layout::sequence),
        what_(what) {}
  ~Forgets() override { synchronize(); }

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override {
    if (action.kind != what_) stages::StagedStrategy::perform(action, step);
  }

 private:
  schedules::ActionKind what_;
};

TEST(SequenceParallel, VerificationCatchesGradientsThatAreNotSummed) {
  const Case of{.strategy = "sequence_parallel"};
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload(of.model, 4), of.spread);
    training.strategy =
        std::make_unique<Forgets>(training.rank_context(options_of(of, training.workload)),
                                  schedules::ActionKind::reduce_gradients);
    EXPECT_FALSE(bench::compare_with_oracle(*training.strategy, training.workload).passed);
  });
}

struct Arrangement {
  bool mixed = false;
  schedules::Sharded shard = "none";
  strategies::Spread spread = {.tensor_ranks = 2};
  std::vector<std::string> cut = {};
};

/// What all ranks of a language model that share its layers gather in a step [bytes].
std::int64_t gathered_bytes(const std::string& strategy, const Arrangement& of) {
  std::atomic<std::int64_t> bytes = 0;
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    models::WorkloadOptions workload = strategies::small_workload("gpt-tiny", 4);
    workload.mixed = of.mixed;
    strategies::RankTraining training(ranks, workload, of.spread);
    const strategies::StrategyOptions options{.split_size = 2, .cut = of.cut, .shard = of.shard};
    training.strategy = strategies::find_strategy(strategy).make(training.rank_context(options));
    training.reset_counts();
    training.strategy->step(training.workload.make_batch(0));
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    bytes += training.tensor->counts()["all_gather"].payload_bytes;
  });
  return bytes;
}

// Also where the head is a group of layers or a stage of its own.
TEST(TensorParallel, InMixedPrecisionShardedOrCutItSendsNoLogits) {
  const std::vector<Arrangement> all = {
      {.mixed = true},
      {.mixed = true, .spread = {.replicas = 2, .tensor_ranks = 2}},
      {.shard = "optimizer", .spread = {.replicas = 2, .tensor_ranks = 2, .sharded = true}},
      {.mixed = true,
       .shard = "parameters",
       .spread = {.replicas = 2, .tensor_ranks = 2, .sharded = true}},
      {.spread = {.pipeline_ranks = 2, .tensor_ranks = 2}, .cut = {"head"}}};
  const std::int64_t by_sequence = gathered_bytes("sequence_parallel", {});
  EXPECT_GT(by_sequence, 0);
  for (std::size_t index = 0; index < all.size(); ++index) {
    SCOPED_TRACE(testing::Message() << "arrangement " << index);
    EXPECT_EQ(gathered_bytes("tensor_parallel", all[index]), 0);
    EXPECT_EQ(gathered_bytes("sequence_parallel", all[index]), by_sequence);
  }
}

// Pairs of column- and row-parallel layers stay together where each is a group of its own.
TEST(TensorParallel, WithGroupsOfLayersPairsGatherNothing) {
  runtime::on_ranks(2, [](distributed::RankContext& ranks) {
    models::WorkloadOptions workload = strategies::small_workload("mlp", 4);
    workload.mixed = true;
    strategies::RankTraining training(ranks, workload, {.tensor_ranks = 2});
    training.strategy = strategies::find_strategy("tensor_parallel").make(training.rank_context());
    EXPECT_TRUE(bench::compare_with_oracle(*training.strategy, training.workload).passed);
    EXPECT_FALSE(training.strategy->costs(4).collectives.contains("all_gather"));
    EXPECT_FALSE(training.tensor->counts().contains("all_gather"));
  });
}

void expect_collectives_in_the_timeline(distributed::RankContext& ranks, const Case& of) {
  strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                    of.spread);
  training.strategy = make(training.rank_context(options_of(of, training.workload)), of);
  const auto step = training.strategy->step(training.workload.make_batch(0));
  runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
  const auto& execution = step->execution();
  const auto count = [&](schedules::ActionKind kind) {
    return std::ranges::count_if(execution,
                                 [kind](const auto& entry) { return entry.action.kind == kind; });
  };
  // Two blocks four times, the embedding, the head's input and the loss twice.
  EXPECT_EQ(count(schedules::ActionKind::tensor_transfer), 2 * 4 + 1 + 1 + 2);
  EXPECT_EQ(count(schedules::ActionKind::tensor_wait), 12);
  for (const auto& entry : execution) EXPECT_LE(entry.start->time(), entry.end->time());
}

TEST(TensorParallel, CollectivesStandInTheTimeline) {
  strategies::over_both_backends(
      Case{}, [](const Case& each) { on_ranks(each, expect_collectives_in_the_timeline); });
}

}  // namespace
}  // namespace stratagem::presets::tensor_strategy_test
