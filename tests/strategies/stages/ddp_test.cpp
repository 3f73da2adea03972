// StagedStrategy where nothing is sharded: DistributedDataParallel.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "bench/oracle/oracle.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/registry.h"
#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::ddp_test {
namespace {

using distributed::RankContext;
using schedules::Action;
using schedules::ActionKind;
using ::testing::HasSubstr;

/// The preset "ddp", as a class that tests can break.
class Ddp : public StagedStrategy {
 public:
  explicit Ddp(const strategies::StrategyContext& context)
      : StagedStrategy(context, strategies::planner_of_replicas(context)) {}
};

struct Case {
  std::string model;
  std::int64_t batch = 8;
  strategies::Spread spread = {.replicas = 2};
  strategies::StrategyOptions options = {};
};

/// [rank]: what each finds of its own state.
template <class Made>
std::vector<reports::Verdict> verify(const Case& of) {
  std::vector<reports::Verdict> found(static_cast<std::size_t>(of.spread.ranks()));
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                      of.spread);
    training.strategy = std::make_unique<Made>(training.rank_context(of.options));
    found[static_cast<std::size_t>(ranks.info().rank)] =
        bench::compare_with_oracle(*training.strategy, training.workload);
  });
  return found;
}

TEST(Ddp, EveryRankEqualsOneDeviceThatSeesTheSameShards) {
  strategies::StrategyOptions small_buckets;
  small_buckets.bucket_mb = 0.01;
  strategies::StrategyOptions accumulated;
  accumulated.accumulation_steps = 2;
  strategies::StrategyOptions afterwards;
  afterwards.overlap = false;
  const strategies::Spread two{.replicas = 2};
  const strategies::Spread three{.replicas = 3};
  for (const Case& of :
       {Case{"toy"}, Case{"mlp"}, Case{"mlp", 7, three}, Case{"toy", 9}, Case{"resnet18"},
        Case{"resnet18", 5}, Case{"resnet18", 8, two, small_buckets},
        Case{"mlp", 8, two, small_buckets}, Case{"resnet18", 8, two, accumulated},
        Case{"mlp", 7, three, accumulated}, Case{"resnet18", 8, two, afterwards}}) {
    SCOPED_TRACE(testing::Message()
                 << of.model << " batch " << of.batch << " ranks " << of.spread.ranks()
                 << " accumulation " << of.options.accumulation_steps << " overlap "
                 << of.options.overlap);
    const auto expect = [](const Case& each) {
      for (const auto& verification : verify<Ddp>(each)) {
        EXPECT_TRUE(verification.passed) << verification.message;
      }
    };
    strategies::over_the_backend_in_order(of, expect);
    if (of.model != "resnet18") expect(of);  // over Gloo without order
  }
}

/// The gradients stay the rank's own.
class MissesTheAllReduce : public Ddp {
 public:
  using Ddp::Ddp;

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override {
    const bool of_a_sum = schedules::is_of_copies(action.kind);
    if (!of_a_sum) Ddp::perform(action, step);
  }
};

/// Every rank's loss is its own mean, so the sum over the ranks is no mean.
class SumsInPlaceOfAMean : public Ddp {
 public:
  using Ddp::Ddp;

 protected:
  double weight(int micro_batch, const stages::StepInProgress& step) const override {
    return 2 * Ddp::weight(micro_batch, step);
  }
};

/// Every rank keeps its own running statistics.
class LeavesBuffersAlone : public Ddp {
 public:
  using Ddp::Ddp;

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override {
    if (action.kind != schedules::ActionKind::broadcast) Ddp::perform(action, step);
  }
};

template <class Broken>
bool is_caught(const std::string& model) {
  for (const auto& verification : verify<Broken>({model})) {
    if (!verification.passed) return true;
  }
  return false;
}

TEST(Ddp, VerificationCatchesAMissingAllReduce) {
  EXPECT_TRUE(is_caught<MissesTheAllReduce>("mlp"));
  EXPECT_TRUE(is_caught<MissesTheAllReduce>("resnet18"));
}

TEST(Ddp, VerificationCatchesASumInPlaceOfAMean) {
  EXPECT_TRUE(is_caught<SumsInPlaceOfAMean>("mlp"));
}

TEST(Ddp, VerificationCatchesAnUnsynchronisedBuffer) {
  EXPECT_TRUE(is_caught<LeavesBuffersAlone>("resnet18"));
  EXPECT_FALSE(is_caught<LeavesBuffersAlone>("mlp")) << "it has none";
}

void expect_its_costs(const Case& of) {
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                      of.spread);
    Ddp ddp(training.rank_context(of.options));
    const auto batch = training.workload.make_batch(0);
    const auto step = [&] {
      ddp.step(batch);
      runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    };
    step();
    training.reset_counts();
    step();
    EXPECT_EQ(distributed::difference_from_costs(training.counts(), ddp.costs(batch.size())), "")
        << of.model << ", buckets of " << of.options.bucket_mb << " MiB, micro-batches "
        << of.options.accumulation_steps << ", overlap " << of.options.overlap;
  });
}

TEST(Ddp, CommunicatesExactlyWhatItsCostsSay) {
  std::vector<strategies::StrategyOptions> cases;
  for (const double bucket : {0.01, 0.1, 25.0}) cases.push_back({.bucket_mb = bucket});
  cases.push_back({.bucket_mb = 0.01, .overlap = false});
  cases.push_back({.accumulation_steps = 2, .bucket_mb = 0.01});
  cases.push_back({.bucket_mb = 0.01, .compression = "fp16"});
  for (const strategies::StrategyOptions& options : cases) {
    for (const char* model : {"toy", "mlp"}) {
      strategies::over_both_backends(Case{.model = model, .options = options}, expect_its_costs);
    }
    strategies::over_the_backend_in_order(Case{.model = "resnet18", .options = options},
                                          expect_its_costs);
  }
}

/// Gradients are exchanged after every micro-batch, as by DDP without no_sync.
class ExchangesEveryMicroBatch : public Ddp {
 public:
  using Ddp::Ddp;

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override {
    Ddp::perform(action, step);
    const bool last = action.micro_batch + 1 == step.plan.plan.schedule.micro_batches;
    if (action.kind != schedules::ActionKind::backward || last) return;
    for (const auto& [name, parameter] : models::parameters(stage(action.stage).layers())) {
      groups().data.front()->all_reduce(parameter.detach().clone())->wait();
    }
  }
};

template <class Made>
std::string difference_from_its_costs() {
  std::string found;
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload("mlp", 8), {.replicas = 2});
    Made ddp(training.rank_context({.accumulation_steps = 2}));
    const auto batch = training.workload.make_batch(0);
    for (int step = 0; step < 3; ++step) {
      training.reset_counts();
      ddp.step(batch);
      runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    }
    if (ranks.info().rank == 0) {
      found = distributed::difference_from_costs(training.counts(), ddp.costs(batch.size()));
    }
  });
  return found;
}

// The update is right all the same, so that only the count tells.
TEST(Ddp, CountingCatchesAnExchangeTooMany) {
  EXPECT_EQ(difference_from_its_costs<Ddp>(), "");
  EXPECT_THAT(difference_from_its_costs<ExchangesEveryMicroBatch>(), HasSubstr("all_reduce: "));
  EXPECT_FALSE(is_caught<ExchangesEveryMicroBatch>("mlp"));
}

/// Notes how many all-reduces were begun when the last gradient of the backward pass, that of the
/// first layer's weight, is there.
class CountsAtTheLastGradient : public Ddp {
 public:
  explicit CountsAtTheLastGradient(const strategies::StrategyContext& context) : Ddp(context) {
    const at::Tensor first = models::parameters(stage(0).layers()).front().tensor;
    first.register_hook([this](const at::Tensor& /*gradient*/) { begun = all_reduces(); });
  }

  std::int64_t all_reduces() const {
    const auto counts = groups().data.front()->counts();
    const auto found = counts.find("all_reduce");
    return found == counts.end() ? 0 : found->second.calls;
  }

  std::int64_t begun = 0;
};

TEST(Ddp, TransfersRunBesideTheBackwardPassUnlessToldOtherwise) {
  for (const bool overlap : {true, false}) {
    const Case of{.model = "resnet18", .options = {.bucket_mb = 0.05, .overlap = overlap}};
    strategies::over_both_backends(of, [](const Case& each) {
      runtime::on_ranks(each.spread.ranks(), [&](distributed::RankContext& ranks) {
        strategies::RankTraining training(ranks, strategies::small_workload(each.model, each.batch),
                                          each.spread);
        CountsAtTheLastGradient ddp(training.rank_context(each.options));
        training.reset_counts();
        const auto step = ddp.step(training.workload.make_batch(0));
        runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
        const auto transfers =
            std::ranges::count_if(step->execution(), [](const schedules::ExecutedAction& entry) {
              return entry.action.kind == schedules::ActionKind::all_reduce;
            });
        EXPECT_EQ(ddp.all_reduces(), transfers);
        EXPECT_EQ(ddp.begun, transfers - 1) << "all but that of the last gradient itself";
        if (each.options.overlap) {
          EXPECT_GT(transfers, 3);
        } else {
          EXPECT_EQ(transfers, 1);
        }
      });
    });
  }
}

void expect_half_precision(const Case& of) {
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                      of.spread);
    training.strategy = std::make_unique<Ddp>(training.rank_context({.compression = "fp16"}));
    const std::int64_t bytes =
        training.strategy->costs(8).collectives.at("all_reduce").payload_bytes;
    const auto found = bench::compare_with_oracle(*training.strategy, training.workload,
                                                  bench::compressed_tolerance);
    EXPECT_TRUE(found.passed) << found.message;
    EXPECT_GT(found.max_relative_error, bench::exact_tolerance) << "it was not compressed";
    training.reset_counts();
    training.strategy->step(training.workload.make_batch(0));
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    EXPECT_EQ(training.counts().at("all_reduce").payload_bytes, bytes);
    std::int64_t parameters = 0;
    for (const auto& [name, tensor] : models::parameters(training.workload.make_model().layers)) {
      parameters += tensor.numel();
    }
    EXPECT_GE(bytes, 2 * parameters);
    EXPECT_LT(bytes, 2.1 * static_cast<double>(parameters)) << "with what aligns them";
  });
}

TEST(Ddp, HalfPrecisionGradientsAreHalfTheBytesAndNearlyTheSame) {
  strategies::over_both_backends(Case{"mlp"}, expect_half_precision);
}

}  // namespace
}  // namespace stratagem::stages::ddp_test
