// What is asked of workers to price a row, and which answers are used again.
#include "bench/measure/step_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/bench/fake_workers.h"
#include "tests/bench/outlines.h"

namespace stratagem::bench::step_prediction_test {
namespace {

using testing::ElementsAre;

STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "test_sharded",
                                             .options = {"split_size"},
                                             .multi_device = true,
                                             .dimensions = {"data"},
                                             .outline = cut_by_count(),
                                             .shards = schedules::Sharded("parameters")});
STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "test_replicated", .multi_device = true, .dimensions = {"data"}});

class StepPrediction : public MeasureTest {
 protected:
  StepPrediction() {
    workers_.on<CollectivesJob>([](const CollectivesJob& job) {
      CollectivesResult result;
      for (const std::int64_t bytes : job.bytes) {
        const double a_mebibyte = job.collective == "all_gather" ? 1 : 5;
        const double ms = a_mebibyte * static_cast<double>(bytes) / (1 << 20);
        result.messages.push_back({.bytes = bytes, .ms = {ms}, .processor_share = 0.5});
      }
      return answered(result);
    });
  }

  static PreparedRow prepared(const std::string& strategy, std::int64_t devices = 2) {
    PreparedRow row;
    row.config = MeasureTest::row(4, strategy);
    row.config.devices = devices;
    row.placement = placement_of(row.config);
    return row;
  }

  StageCosts priced(const PreparedRow& row) {
    const MeasureEnvironment own = environment();
    Calibrator calibrator(own);
    return price_stages(row, own, calibrator).launched.result;
  }

  /// The collectives that workers timed.
  std::vector<std::string> timed() const {
    std::vector<std::string> names;
    for (const Job& job : workers_.jobs) {
      if (const auto* one = std::get_if<CollectivesJob>(&job)) names.push_back(one->collective);
    }
    return names;
  }
};

TEST_F(StepPrediction, EachCollectiveHasALinkOfItsOwn) {
  const PreparedRow row = prepared("test_sharded");
  for (const char* when : {"measured", "from the cache"}) {
    const Links links = priced(row).links;
    ASSERT_EQ(links.gather.size(), 4U) << when;
    ASSERT_EQ(links.scatter.size(), 4U) << when;
    EXPECT_DOUBLE_EQ(links.gather[1].ms, 1) << when;
    EXPECT_DOUBLE_EQ(links.scatter[1].ms, 5) << when;
    EXPECT_DOUBLE_EQ(links.scatter[1].processor_share, 0.5) << when;
    EXPECT_THAT(timed(), ElementsAre("all_gather", "all_to_all")) << when;
  }
}

TEST_F(StepPrediction, ALinkIsTimedAnewForWhateverItDependsOn) {
  workers_.on<CalibrateStagesJob>([](const CalibrateStagesJob&) {
    return answered(CalibrateStagesResult{.costs = {{.kind = "forward", .ms = 1}}});
  });
  PreparedRow row = prepared("test_replicated");
  priced(row);
  row.config.seed += 1;  // says nothing of the link
  priced(row);
  EXPECT_EQ(workers_.count<CollectivesJob>(), 1U);
  priced(prepared("test_replicated", 4));
  EXPECT_EQ(workers_.count<CollectivesJob>(), 2U);
  row.config.backend = "nccl";
  priced(row);
  EXPECT_EQ(workers_.count<CollectivesJob>(), 3U);
}

}  // namespace
}  // namespace stratagem::bench::step_prediction_test
