#include "strategies/data_parallel/ddp.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "bench/task_oracle.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/training.h"

namespace stratagem::strategies {
namespace {

using pipeline::Action;
using pipeline::ActionKind;
using runtime::RankContext;
using ::testing::HasSubstr;

/// A rank's part of a data-parallel training: one device, and a group over all ranks.
struct RankTraining : Training {
  RankTraining(RankContext& ranks, const models::WorkloadOptions& options) : Training(options, 1) {
    std::vector<int> members;
    for (int rank = 0; rank < ranks.place().world_size; ++rank) members.push_back(rank);
    runtime::BackendOptions backend;
    backend.timeout = std::chrono::seconds(20);
    data_group = ranks.make_group("data", members, "gloo", *group.devices[0], backend);
  }
  ~RankTraining() { strategy.reset(); }

  StrategyContext rank_context(const StrategyOptions& options = {}) {
    StrategyContext own = context(options);
    own.data_group = data_group.get();
    return own;
  }

  std::unique_ptr<runtime::ProcessGroup> data_group;
};

struct Case {
  std::string model;
  std::int64_t batch = 8;
  int ranks = 2;
  StrategyOptions options = {};
};

/// [rank]: what each finds of its own state.
template <class Made>
std::vector<reports::Verification> verify(const Case& of) {
  std::vector<reports::Verification> found(static_cast<std::size_t>(of.ranks));
  runtime::on_ranks(of.ranks, [&](RankContext& ranks) {
    RankTraining training(ranks, small_workload(of.model, of.batch));
    training.strategy = std::make_unique<Made>(training.rank_context(of.options));
    found[static_cast<std::size_t>(ranks.place().rank)] =
        bench::compare_with_oracle(*training.strategy, training.workload);
  });
  return found;
}

TEST(Ddp, EveryRankEqualsOneDeviceThatSeesTheSameShards) {
  StrategyOptions small_buckets;
  small_buckets.bucket_mebibytes = 0.01;
  StrategyOptions accumulated;
  accumulated.accumulation_steps = 2;
  StrategyOptions afterwards;
  afterwards.overlap = false;
  for (const Case& of :
       {Case{"toy"}, Case{"mlp"}, Case{"mlp", 7, 3}, Case{"toy", 9, 2}, Case{"resnet18", 8, 2},
        Case{"resnet18", 5, 2}, Case{"resnet18", 8, 2, small_buckets},
        Case{"mlp", 8, 2, small_buckets}, Case{"resnet18", 8, 2, accumulated},
        Case{"mlp", 7, 2, accumulated}, Case{"resnet18", 8, 2, afterwards}, Case{"mlp", 8, 1}}) {
    SCOPED_TRACE(testing::Message()
                 << of.model << " batch " << of.batch << " ranks " << of.ranks << " accumulation "
                 << of.options.accumulation_steps << " overlap " << of.options.overlap);
    for (const auto& verification : verify<Ddp>(of)) {
      EXPECT_TRUE(verification.passed) << verification.message;
    }
  }
}

/// The gradients stay the rank's own.
class MissesTheAllReduce : public Ddp {
 public:
  using Ddp::Ddp;

 protected:
  void perform(const Action& action, const models::Batch& batch,
               std::vector<at::Tensor>& losses) override {
    if (action.kind == ActionKind::backward) {
      return StagedStrategy::perform(action, batch, losses);
    }
    Ddp::perform(action, batch, losses);
  }
};

/// Every rank's loss is its own mean, so the sum over the ranks is no mean.
class SumsInPlaceOfAMean : public Ddp {
 public:
  using Ddp::Ddp;

 protected:
  double weight(int micro_batch) const override { return 2 * Ddp::weight(micro_batch); }
};

/// Every rank keeps its own running statistics.
class LeavesBuffersAlone : public Ddp {
 public:
  using Ddp::Ddp;

 protected:
  void perform(const Action& action, const models::Batch& batch,
               std::vector<at::Tensor>& losses) override {
    if (action.kind != ActionKind::broadcast) Ddp::perform(action, batch, losses);
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

TEST(Ddp, CommunicatesExactlyWhatItsCostsSay) {
  for (const char* model : {"toy", "mlp", "resnet18"}) {
    for (const double bucket : {0.01, 0.1, 25.0}) {
      runtime::on_ranks(2, [&](RankContext& ranks) {
        RankTraining training(ranks, small_workload(model, 8));
        StrategyOptions options;
        options.bucket_mebibytes = bucket;
        Ddp ddp(training.rank_context(options));
        const auto batch = training.workload.make_batch(0);
        const auto step = [&] {
          ddp.step(batch);
          runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
        };
        step();  // the Reducer arranges its buckets after the first
        step();
        training.data_group->reset_counts();
        step();
        const auto counts = training.data_group->counts();
        const auto costs = ddp.costs().collectives;
        SCOPED_TRACE(testing::Message() << model << " bucket " << bucket);
        ASSERT_EQ(counts.size(), costs.size());
        for (const auto& [collective, cost] : costs) {
          EXPECT_EQ(counts.at(collective).calls, cost.calls) << collective;
          EXPECT_EQ(counts.at(collective).payload_bytes, cost.payload_bytes) << collective;
        }
      });
    }
  }
}

TEST(Ddp, TransfersRunBesideTheBackwardPassUnlessToldOtherwise) {
  for (const bool overlap : {true, false}) {
    runtime::on_ranks(2, [&](RankContext& ranks) {
      RankTraining training(ranks, small_workload("resnet18", 8));
      StrategyOptions options;
      options.bucket_mebibytes = 0.05;
      options.overlap = overlap;
      Ddp ddp(training.rank_context(options));
      const auto batch = training.workload.make_batch(0);
      const auto step = ddp.step(batch);
      runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
      std::chrono::steady_clock::time_point backward_end;
      for (const auto& entry : step->execution()) {
        if (entry.action.kind == ActionKind::backward) backward_end = entry.end->time();
      }
      int transfers = 0;
      int beside = 0;
      for (const auto& entry : step->execution()) {
        if (entry.action.kind != ActionKind::all_reduce) continue;
        ++transfers;
        beside += entry.start->time() < backward_end ? 1 : 0;
      }
      if (overlap) {
        EXPECT_GT(transfers, 3);
        EXPECT_GT(beside, transfers / 2);
      } else {
        EXPECT_EQ(transfers, 1);
      }
    });
  }
}

TEST(Ddp, FewerSamplesThanRanksAreRefused) {
  EXPECT_THROW(slices_of_replicas(1, 2, 1), std::invalid_argument);
  EXPECT_THROW(slices_of_replicas(4, 2, 3), std::invalid_argument);
}

TEST(Ddp, SharesOfTheBatchDifferByOneSampleAtMost) {
  const auto slices = slices_of_replicas(7, 3, 1);
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices[0][0].count, 3);
  EXPECT_EQ(slices[1][0].start, 3);
  EXPECT_EQ(slices[1][0].count, 2);
  EXPECT_EQ(slices[2][0].start, 5);
  EXPECT_EQ(slices[2][0].replica, 2);
}

}  // namespace
}  // namespace stratagem::strategies
