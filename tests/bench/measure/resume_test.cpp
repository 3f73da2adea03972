// Runs that are stopped, and gone on with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/file_reader.h"
#include "tests/bench/fake_workers.h"

namespace stratagem::bench::resume_test {
namespace {

using testing::SizeIs;
namespace fs = std::filesystem;

class ResumeTest : public MeasureTest {};

/// Stops as Ctrl-C does, once a number of launches were made.
auto interrupt_after(int launches) {
  return [launches, made = 0](const auto&) mutable -> FakeWorkers::Reply {
    if (made++ < launches) return std::nullopt;
    return LaunchResult{.status = LaunchStatus::interrupted, .result = {}, .error = {}};
  };
}

TEST_F(ResumeTest, KeepsWhatIsFinishedAndGoesOnFromIt) {
  workers_.on<MeasureJob>(interrupt_after(3));
  const Measurement stopped = measure_rows({row(4), row(8)});
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.finished_launches, 3u);
  EXPECT_EQ(stopped.planned_launches, 4u);
  EXPECT_EQ(exit_code(stopped), 130);
  EXPECT_TRUE(fs::exists(partial()));
  EXPECT_FALSE(fs::exists(options_.out));

  workers_.forget();
  options_.resume = true;
  const Measurement resumed = measure_rows({row(4), row(8)});
  EXPECT_EQ(workers_.count<MeasureJob>(), 1u);
  for (const reports::Row& each : resumed.results.rows) EXPECT_THAT(each.repetitions, SizeIs(2));
  write_results_and_clean_up(options_.out, resumed.results);
  EXPECT_FALSE(fs::exists(partial()));
  const auto written = nlohmann::json::parse(reports::read_file(options_.out.string(), "results"));
  EXPECT_EQ(written.at("benchmarks").back().at("family_index"), 0);
  EXPECT_EQ(written.at("benchmarks").back().at("per_family_instance_index"), 1) << "the second row";
}

TEST_F(ResumeTest, ARunWithoutResumeBeginsAnew) {
  workers_.on<MeasureJob>(interrupt_after(3));
  measure_rows({row(4), row(8)});
  workers_.forget();
  measure_rows({row(4), row(8)});
  EXPECT_EQ(workers_.count<MeasureJob>(), 4u);
}

TEST_F(ResumeTest, RefusesToGoOnWithOtherRows) {
  workers_.on<MeasureJob>(interrupt_after(1));
  measure_rows({row(4), row(8)});
  workers_.forget();
  options_.resume = true;
  EXPECT_THROW(measure_rows({row(4), row(16)}), std::invalid_argument);
}

TEST_F(ResumeTest, GoesOnWithMoreRounds) {
  workers_.on<MeasureJob>(interrupt_after(1));
  measure_rows({row(4)});
  workers_.forget();
  options_.resume = true;
  Config more = row(4);
  more.repetitions = 4;
  const Measurement resumed = measure_rows({more});
  EXPECT_EQ(workers_.count<MeasureJob>(), 3u);
  EXPECT_THAT(resumed.results.rows[0].repetitions, SizeIs(4));
}

TEST_F(ResumeTest, AFailedRowIsTriedAgainWhenResumed) {
  workers_.on<MeasureJob>([](const MeasureJob&) { return FakeWorkers::failure("lost"); });
  measure_rows({row(4)});
  workers_.forget();
  options_.resume = true;
  EXPECT_EQ(exit_code(measure_rows({row(4)})), 0);
}

TEST_F(ResumeTest, AnInterruptBeforeTheFirstLaunchMeasuresNothing) {
  workers_.on<VerifyJob>(interrupt_after(0));
  EXPECT_THROW(measure_rows({row(4)}), Interrupted);
}

}  // namespace
}  // namespace stratagem::bench::resume_test
