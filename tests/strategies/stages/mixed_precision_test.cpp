// Half formats beside float32: what is kept in which, over ranks and micro-batches, and steps that
// are skipped.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/oracle/oracle.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"
#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::mixed_precision_test {
namespace {

using schedules::Action;
using schedules::ActionKind;
using ReduceDtype = decltype(strategies::StrategyOptions::reduce_dtype);
using ::testing::Each;
using ::testing::HasSubstr;

models::WorkloadOptions mixed(const std::string& model, at::ScalarType dtype,
                              std::int64_t batch = 4) {
  models::WorkloadOptions options = strategies::small_workload(model, batch);
  options.dtype = dtype;
  options.mixed = true;
  return options;
}

struct Case {
  std::string strategy;
  strategies::Spread spread = {};
  strategies::StrategyOptions options = {.split_size = 2};
  std::string model = "gpt-tiny";
  std::int64_t batch = 4;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"single"},
      {"single", {}, {}, "resnet18"},
      {"pipeline", {.devices_per_rank = 2}, {.split_size = 1}},
      {"pipeline", {.pipeline_ranks = 2}, {.split_size = 1, .schedule = "zb_h1"}},
      {"ddp", {.replicas = 2}},
      {"ddp", {.replicas = 2}, {.accumulation_steps = 2}, "resnet18"},
      {"zero1", {.replicas = 2}, {.accumulation_steps = 2}},
      {"zero2", {.replicas = 2}},
      {"zero3", {.replicas = 2}, {.accumulation_steps = 2}},
      {"zero1", {.replicas = 4, .shard_groups = 2}, {.accumulation_steps = 2}, "resnet18", 8},
      {"zero2", {.replicas = 4, .shard_groups = 2}},
      {"zero3", {.replicas = 4, .shard_groups = 2}, {.accumulation_steps = 2}, "gpt-tiny", 8},
      {"tensor_parallel", {.tensor_ranks = 2}},
      {"sequence_parallel", {.tensor_ranks = 2}},
      {"sequence_parallel",
       {.replicas = 2, .tensor_ranks = 2},
       {.accumulation_steps = 2, .shard = "optimizer"}},
      {"sequence_parallel",
       {.pipeline_ranks = 2, .tensor_ranks = 2},
       {.split_size = 1, .schedule = "zb_h1"}},
      {"sequence_parallel", {.replicas = 2, .tensor_ranks = 2}, {.shard = "parameters"}}};
  return all;
}

/// What `work` finds on each rank.
template <class Result, class Work>
std::vector<Result> on_each_rank(const Case& of, const models::WorkloadOptions& options,
                                 const Work& work) {
  strategies::Spread spread = of.spread;
  spread.sharded = true;
  std::vector<Result> found(static_cast<std::size_t>(spread.ranks()));
  const auto run = [&](strategies::RankTraining& training) {
    found[static_cast<std::size_t>(training.rank)] = work(training);
  };
  runtime::on_ranks(spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, options, spread);
    run(training);
  });
  return found;
}

// In float64 nothing is rounded, and what remains is how gradients and parameters go between the
// two copies.
TEST(MixedPrecision, InFloat64EqualsOneDevice) {
  for (const Case& of : cases()) {
    SCOPED_TRACE(testing::Message() << of.strategy << " of " << of.model);
    const auto found = on_each_rank<std::string>(
        of, mixed(of.model, at::kDouble, of.batch), [&](strategies::RankTraining& training) {
          training.strategy =
              strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
          return bench::compare_with_oracle(*training.strategy, training.workload).message;
        });
    EXPECT_THAT(found, Each(std::string()));
  }
}

TEST(MixedPrecision, KeepsParametersMomentsAndStatisticsInFloat32) {
  for (const char* model : {"gpt-tiny", "resnet18"}) {
    const auto found = on_each_rank<std::string>(
        {.strategy = "single", .model = model}, mixed(model, at::kBFloat16),
        [&](strategies::RankTraining& training) {
          training.strategy = strategies::find_strategy("single").make(training.rank_context());
          training.strategy->step(training.workload.make_batch(0));
          std::string others;
          for (const auto& [name, tensor] : training.strategy->state()) {
            if (tensor.is_floating_point() && tensor.scalar_type() != at::kFloat) others += name;
          }
          return others;
        });
    EXPECT_THAT(found, Each(std::string()));
  }
}

// What is summed in bfloat16 is a number of that format; a step's bounds take that for rounding.
TEST(MixedPrecision, SumsOverMicroBatchesAndRanksHaveTheBitsOfFloat32) {
  for (const Case& of : cases()) {
    const bool sums = of.strategy == "pipeline" || of.spread.replicas > 1;
    if (of.model != "gpt-tiny" || !sums) continue;
    SCOPED_TRACE(testing::Message() << of.strategy);
    const auto found = on_each_rank<std::int64_t>(
        of, mixed(of.model, at::kBFloat16), [&](strategies::RankTraining& training) {
          training.strategy =
              strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
          training.strategy->step(training.workload.make_batch(0));
          std::int64_t finer = 0;  // than bfloat16
          for (const auto& [name, tensor] : training.strategy->state()) {
            if (!name.starts_with("gradient.")) continue;
            finer += tensor.ne(tensor.to(at::kBFloat16)).sum().item<std::int64_t>();
          }
          return finer;
        });
    EXPECT_THAT(found, Each(testing::Gt(1000)));
  }
}

/// The largest difference of a tensor of the state, relative to its largest element.
double relative_difference(const strategies::StateDictionary& a,
                           const strategies::StateDictionary& b) {
  double largest = 0;
  for (const auto& [name, tensor] : a) {
    const at::Tensor other = b.at(name).to(at::kDouble);
    const double scale = std::max(other.abs().max().item<double>(), 1e-30);
    largest =
        std::max(largest, (tensor.to(at::kDouble) - other).abs().max().item<double>() / scale);
  }
  return largest;
}

TEST(MixedPrecision, IsNearFloat32AndNotEqual) {
  for (const Case& of : cases()) {
    if (of.model != "gpt-tiny") continue;
    const auto state_in = [&](at::ScalarType dtype) {
      auto options = mixed(of.model, dtype, of.batch);
      if (dtype == at::kHalf) options.loss_scale = 256;
      return on_each_rank<strategies::StateDictionary>(
                 of, options,
                 [&](strategies::RankTraining& training) {
                   training.strategy = strategies::find_strategy(of.strategy)
                                           .make(training.rank_context(of.options));
                   training.strategy->step(training.workload.make_batch(0));
                   return training.strategy->state();
                 })
          .front();
    };
    const strategies::StateDictionary in_float32 = state_in(at::kFloat);
    for (const at::ScalarType format : {at::kBFloat16, at::kHalf}) {
      SCOPED_TRACE(testing::Message() << of.strategy << " in " << c10::toString(format));
      const double difference = relative_difference(state_in(format), in_float32);
      EXPECT_GT(difference, 1e-5) << "nothing was rounded";
      EXPECT_LT(difference, 0.2);
    }
  }
}

/// What one step of a rank leaves, and how its counts differ from its costs.
struct Stepped {
  strategies::StateDictionary gradients = {};
  distributed::CommunicationCounts counts = {};
  std::string difference = {};
};

std::vector<Stepped> stepped(const Case& of, at::ScalarType dtype = at::kBFloat16) {
  return on_each_rank<Stepped>(
      of, mixed(of.model, dtype, of.batch), [&](strategies::RankTraining& training) {
        training.strategy =
            strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
        const auto batch = training.workload.make_batch(0);
        training.reset_counts();
        training.strategy->step(batch);
        runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
        Stepped found{.counts = training.counts()};
        found.difference = distributed::difference_from_costs(
            found.counts, training.strategy->costs(batch.size()));
        found.gradients = training.strategy->state();
        std::erase_if(found.gradients,
                      [](const auto& entry) { return !entry.first.starts_with("gradient."); });
        return found;
      });
}

/// How many elements are no numbers of bfloat16.
std::int64_t finer_than_bfloat16(const strategies::StateDictionary& gradients) {
  std::int64_t finer = 0;
  for (const auto& [name, tensor] : gradients) {
    finer += tensor.ne(tensor.to(at::kBFloat16)).sum().item<std::int64_t>();
  }
  return finer;
}

std::vector<Case> cases_that_reduce() {
  return {{"ddp", {.replicas = 2}, {.accumulation_steps = 2}},
          {"zero1", {.replicas = 2}},
          {"zero1", {.replicas = 2}, {.accumulation_steps = 2}},
          {"zero2", {.replicas = 2}, {.accumulation_steps = 2}},
          {"zero3", {.replicas = 2}},
          {"zero1", {.replicas = 4, .shard_groups = 2}, {.accumulation_steps = 2}, "gpt-tiny", 8},
          {"zero3", {.replicas = 4, .shard_groups = 2}}};
}

// Whoever adds them up: the exchange, or the library, as NCCL does, which is given what it sums.
TEST(MixedPrecision, RanksSumInTheFormatThatReduceDtypeSays) {
  using By = distributed::ReduceScatter;
  for (Case of : cases_that_reduce()) {
    std::vector<std::vector<Stepped>> in_float32;
    for (const By by : {By("exchange"), By("library")}) {
      SCOPED_TRACE(testing::Message() << of.strategy << ", accumulation "
                                      << of.options.accumulation_steps << ", by " << by.name());
      of.options.reduce_scatter = by;
      of.options.reduce_dtype = "float32";
      in_float32.push_back(stepped(of));
      of.options.reduce_dtype = "same";
      const std::vector<Stepped> same = stepped(of);
      for (std::size_t rank = 0; rank < same.size(); ++rank) {
        EXPECT_EQ(in_float32.back()[rank].difference, "");
        EXPECT_EQ(same[rank].difference, "");
        EXPECT_GT(finer_than_bfloat16(in_float32.back()[rank].gradients), 1000);
        const bool adds_in_the_shard = of.strategy == "zero2" && of.options.accumulation_steps > 1;
        EXPECT_EQ(finer_than_bfloat16(same[rank].gradients) > 0, adds_in_the_shard);
      }
    }
    if (of.spread.replicas > 2) continue;  // of more the library's order is its own
    EXPECT_EQ(
        strategies::largest_difference(in_float32[0][0].gradients, in_float32[1][0].gradients), 0)
        << of.strategy;
  }
}

TEST(MixedPrecision, PartialGradientsBySequenceAreSummedInTheFormatToo) {
  for (const bool replicated : {false, true}) {
    Case of{"sequence_parallel", {.replicas = replicated ? 2 : 1, .tensor_ranks = 2}};
    const auto finer_norms = [&](ReduceDtype reduce_dtype) {
      of.options.reduce_dtype = reduce_dtype;
      strategies::StateDictionary norms;
      for (const Stepped& rank : stepped(of)) {
        EXPECT_EQ(rank.difference, "") << reduce_dtype.name();
        for (const auto& [name, tensor] : rank.gradients) {
          if (name.find("norm") != std::string::npos) norms[name] = tensor;
        }
      }
      EXPECT_FALSE(norms.empty());
      return finer_than_bfloat16(norms);
    };
    EXPECT_GT(finer_norms("float32"), 0);
    if (!replicated) {
      EXPECT_EQ(finer_norms("same"), 0);
    }
  }
}

// ZeRO: "gradients are accumulated locally" where they are not sharded (DeepSpeed, Megatron-LM).
TEST(MixedPrecision, WholeGradientsTravelOnceAStepHoweverManyMicroBatchesItHas) {
  for (const char* strategy : {"ddp", "zero1"}) {
    const bool sharded = strategy == std::string("zero1");
    const char* collective = sharded ? "reduce_scatter" : "all_reduce";
    const auto of = [&](std::int64_t accumulation, ReduceDtype reduce_dtype) {
      return stepped({strategy,
                      {.replicas = 2},
                      {.accumulation_steps = accumulation, .reduce_dtype = reduce_dtype}})
          .front()
          .counts.at(collective);
    };
    const auto once = of(1, "float32");
    const auto summed = of(2, "float32");
    EXPECT_EQ(summed.calls, once.calls);
    EXPECT_EQ(of(2, "same").calls, once.calls);
    // What is exchanged as it was made is summed in float32 without being sent in it.
    EXPECT_EQ(summed.payload_bytes, sharded ? 2 * once.payload_bytes : once.payload_bytes);
    EXPECT_EQ(2 * of(2, "same").payload_bytes, summed.payload_bytes);
  }
}

/// zero3 in float16 whose first gradient is infinite on one rank in one step.
class Overflows : public StagedStrategy {
 public:
  Overflows(const strategies::StrategyContext& context, int in_step)
      : StagedStrategy(context, strategies::planner_of_replicas(context)), in_step_(in_step) {}

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action.kind == ActionKind::reduce_scatter && action.stage == 0) {
      const bool now = step_++ == in_step_ && groups().data.front()->rank() == 1;
      const at::NoGradGuard no_gradient;
      const at::Tensor first = models::parameters(stage(0).layers()).front().tensor;
      if (now) first.grad().view(-1)[0].fill_(std::numeric_limits<double>::infinity());
    }
    StagedStrategy::perform(action, step);
  }

 private:
  int in_step_;
  int step_ = 0;
};

models::WorkloadOptions scaled(double scale, bool dynamic) {
  models::WorkloadOptions options = mixed("gpt-tiny", at::kHalf);
  options.loss_scale = scale;
  options.dynamic_loss_scale = dynamic;
  options.optimizer = {.kind = models::OptimizerOptions::Kind::adamw, .learning_rate = 1e-3};
  return options;
}

struct Skip {
  bool unchanged = false;
  std::vector<bool> skipped;
  std::vector<double> scales;
};

void expect_all_skip(const Case& of) {
  const auto found =
      on_each_rank<Skip>(of, scaled(256, true), [&](strategies::RankTraining& training) {
        auto made = std::make_unique<Overflows>(training.rank_context(of.options), 1);
        Skip skip;
        const auto step = [&](std::uint64_t batch) {
          const auto pending = made->step(training.workload.make_batch(batch));
          runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
          skip.skipped.push_back(pending->skipped());
          skip.scales.push_back(made->state().at("loss_scaler.scale").item<double>());
        };
        const auto parameters = [&] {
          auto state = made->state();
          std::erase_if(state, [](const auto& entry) {
            return entry.first.starts_with("gradient.") || entry.first.starts_with("loss_scaler.");
          });
          return state;
        };
        step(0);
        const auto before = parameters();
        step(1);
        skip.unchanged = strategies::largest_difference(before, parameters()) == 0;
        step(2);
        return skip;
      });
  for (const Skip& rank : found) {
    EXPECT_TRUE(rank.unchanged);
    EXPECT_EQ(rank.skipped, (std::vector<bool>{false, true, false}));
    EXPECT_EQ(rank.scales, (std::vector<double>{256, 128, 128}));
  }
}

TEST(MixedPrecision, AnInfinityOnOneRankMakesAllSkipAndChangesNothing) {
  const strategies::StrategyOptions options{.shard = "parameters"};
  expect_all_skip({.strategy = "zero3", .spread = {.replicas = 2}, .options = options});
  expect_all_skip(
      {.strategy = "zero3", .spread = {.replicas = 4, .shard_groups = 2}, .options = options});
}

// With a hysteresis the scale is the same, and so are the roundings.
TEST(MixedPrecision, AStepBehindASkippedOneIsThatOfATrainingWithoutIt) {
  const Case of{.strategy = "zero3", .spread = {.replicas = 2}, .options = {.shard = "parameters"}};
  auto options = scaled(256, true);
  options.loss_scale_hysteresis = 2;
  const auto state_behind = [&](int overflow, const std::vector<std::uint64_t>& batches) {
    return on_each_rank<strategies::StateDictionary>(
               of, options,
               [&](strategies::RankTraining& training) {
                 Overflows made(training.rank_context(of.options), overflow);
                 for (const std::uint64_t batch : batches) {
                   made.step(training.workload.make_batch(batch));
                 }
                 auto state = made.state();
                 std::erase_if(state, [](const auto& entry) {
                   return entry.first.starts_with("loss_scaler.");
                 });
                 return state;
               })
        .front();
  };
  constexpr int never = -1;
  EXPECT_EQ(strategies::largest_difference(state_behind(1, {0, 1, 2}), state_behind(never, {0, 2})),
            0);
}

TEST(MixedPrecision, AtTheFloorItStopsAndNamesTheTensor) {
  const Case of{.strategy = "zero3", .spread = {.replicas = 2}, .options = {.shard = "parameters"}};
  const auto found =
      on_each_rank<std::string>(of, scaled(64, false), [&](strategies::RankTraining& training) {
        Overflows made(training.rank_context(of.options), 0);
        made.step(training.workload.make_batch(0));
        try {
          runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
        } catch (const std::exception& error) {
          return std::string(error.what());
        }
        return std::string();
      });
  EXPECT_THAT(found, Each(HasSubstr("loss scale 64: the gradient of ")));
  EXPECT_THAT(found, testing::Contains(HasSubstr("embedding")));
}

}  // namespace
}  // namespace stratagem::stages::mixed_precision_test
