#include "reports/row_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/row_comparison.h"
#include "reports/verdict.h"
#include "tests/reports/example_results.h"

namespace stratagem::reports::row_summary_test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RowSummary summary_of(const Row& row) { return summarise({row}).front(); }

/// A row of `strategy` with six launches about this time.
Row row_of(const std::string& strategy, double step_ms) {
  return example_row(strategy, "batch:48", step_ms);
}

TEST(Workload, RowsOfDifferentOnesNeverMeet) {
  std::vector<Row> rows;
  for (const char* workload : {"group:0", "group:1"}) {
    for (const char* strategy : {"single", "pipeline", "model_parallel"}) {
      rows.push_back(row_of(strategy, 100));
      rows.back().workload = workload;
      rows.back().name += std::string("/") + workload;
    }
  }
  const std::vector<RowSummary> summaries = summarise(rows);
  std::vector<std::string> names;
  for (const RowSummary& row : summaries) {
    names.push_back(row.name);
    const std::string group = row.name.substr(row.name.rfind("/group:"));
    EXPECT_THAT(*row.baseline, HasSubstr(group));
    EXPECT_EQ(row.cannot_tell.size(), 2U);
    for (const std::string& other : row.cannot_tell) EXPECT_THAT(other, HasSubstr(group));
  }
  for (const std::string& line : verdicts(summaries, names)) {
    EXPECT_FALSE(line.find("group:0") != line.npos && line.find("group:1") != line.npos) << line;
  }
  EXPECT_EQ(verdicts(summaries, names).size(), 4U);
}

TEST(RowSummary, ASampleIsALaunchByTheMedianOfItsSteps) {
  Row row = row_of("pipeline", 100);
  for (const double launch : {1010, 990, 1005, 2000, 995, 1001, 999}) {
    row.repetitions.push_back(example_repetition(0, {launch, launch - 30, launch + 90}));
  }
  row.repetitions.erase(row.repetitions.begin() + 1, row.repetitions.begin() + 6);
  row.repetitions[0].step_ms = {990, 1010};
  const RowSummary summary = summary_of(row);
  EXPECT_THAT(summary.samples_ms, ElementsAre(1000, 1010, 990, 1005, 2000, 995, 1001, 999));
  EXPECT_THAT(summary.outliers, ElementsAre(4)) << "marked where it stands, and not dropped";
  EXPECT_DOUBLE_EQ(summary.median_ms, 1000.5);
  EXPECT_DOUBLE_EQ(summary.mean_ms, 1125);
  EXPECT_NEAR(summary.deviation_ms, 330.766534, 1e-6);
  EXPECT_DOUBLE_EQ(summary.interval_ms->low, 990);
  EXPECT_DOUBLE_EQ(summary.interval_ms->high, 2000);
  EXPECT_NEAR(summary.interval_ms->coverage, 0.9921875, 1e-9);
  EXPECT_DOUBLE_EQ(*summary.samples_per_second, 48e3 / 1000.5);
  EXPECT_TRUE(summary.wide);
  EXPECT_FALSE(summary_of(row_of("pipeline", 1000)).wide);
}

TEST(RowSummary, TheTutorialsSampleIsAWholeCall) {
  Row row = row_of("single", 100);
  row.config.emplace_back("protocol", "tutorial");
  for (Repetition& repetition : row.repetitions) {
    repetition.step_ms = {100, 120, 80};
    repetition.predicted_ms = 90;
  }
  const RowSummary summary = summary_of(row);
  EXPECT_THAT(summary.samples_ms, Each(300));
  EXPECT_DOUBLE_EQ(*summary.samples_per_second, 480);
  EXPECT_EQ(summary.predicted_ms, 90) << "of one step";
  EXPECT_FALSE(summary.prediction_error) << "a call is no step";
}

TEST(RowSummary, FiguresOfTheDevices) {
  Row row = row_of("pipeline", 1000);
  row.repetitions.resize(3);
  for (Repetition& repetition : row.repetitions) {
    for (DeviceRecord& device : repetition.devices) {
      device.breakdown_ms = {.compute = 700, .bubble = 250, .optimizer = 20, .input_copy = 10};
    }
  }
  Breakdown& parts = row.repetitions[0].devices[0].breakdown_ms;
  parts = {.compute = 100,
           .communication_exposed = 60,
           .communication_hidden = 120,
           .wait = 30,
           .bubble = 250,
           .optimizer = 20,
           .input_copy = 10};
  row.repetitions[1].mfu = 0.5;
  row.repetitions[2].mfu.reset();
  row.repetitions[1].predicted_ms = 1100;
  row.repetitions[2].counters["tokens_per_second"] = 7;
  const RowSummary summary = summary_of(row);
  EXPECT_DOUBLE_EQ(*summary.bubble.measured, 0.25);
  EXPECT_DOUBLE_EQ(*summary.bubble.ideal, 0.2);
  EXPECT_DOUBLE_EQ(summary.breakdown_ms->compute, (100 + 5 * 700) / 6.0);
  EXPECT_DOUBLE_EQ(summary.breakdown_ms->wait, 30 / 6.0);
  const double whole = (100 + 5 * 700 + 60 + 30 + 6 * (250 + 20 + 10)) / 6.0;
  EXPECT_DOUBLE_EQ(summary.communication_share->exposed, 90 / 6.0 / whole);
  EXPECT_DOUBLE_EQ(summary.communication_share->hidden, 120 / 6.0 / whole);
  EXPECT_EQ(summary.peak_memory_bytes, std::int64_t{1300} << 20);
  EXPECT_DOUBLE_EQ(*summary.mfu, (0.61 + 0.5) / 2);
  EXPECT_EQ(summary.predicted_ms, 1100);
  EXPECT_DOUBLE_EQ(*summary.prediction_error, 1100 / summary.median_ms - 1);
  EXPECT_EQ(summary.tokens_per_second, 7);
}

TEST(RowSummary, WhatIsUnknownIsEmpty) {
  Row row = row_of("pipeline", 1000);
  for (Repetition& repetition : row.repetitions) {
    repetition.devices.clear();
    repetition.mfu.reset();
  }
  const RowSummary summary = summary_of(row);
  EXPECT_FALSE(summary.bubble.measured || summary.breakdown_ms || summary.communication_share);
  EXPECT_FALSE(summary.mfu || summary.peak_memory_bytes || summary.predicted_ms);
  EXPECT_FALSE(summary.baseline || summary.speed_up() || summary.tokens_per_second);
}

TEST(RowSummary, TheBaselineIsSingleWithTheFewestCores) {
  std::vector<Row> rows = {row_of("pipeline", 1000), example_row("single", "cores:4", 500, 4),
                           example_row("single", "cores:2", 800, 2)};
  const std::vector<RowSummary> summaries = summarise(rows);
  EXPECT_EQ(summaries[0].baseline, rows[2].name);
  EXPECT_NEAR(summaries[0].speed_up()->value, 0.8, 1e-4);
  EXPECT_NEAR(summaries[0].speed_up()->low, 0.79262213, 1e-8);
  EXPECT_NEAR(summaries[0].speed_up()->high, 0.80742227, 1e-8);
  EXPECT_DOUBLE_EQ(summaries[0].speed_up()->coverage, 1 - 2 * 7.0 / 924) << "of three pairs";
  EXPECT_EQ(summaries[2].baseline, rows[2].name);
  EXPECT_EQ(summaries[2].speed_up(), nullptr) << "over itself";
  EXPECT_NEAR(summaries[1].ratios.at(rows[0].name).value, 2, 1e-4);
  rows[2].repetitions[0].error = Error{0, "", "", "lost"};
  EXPECT_EQ(summarise(rows)[0].baseline, rows[1].name) << "of those that worked";
}

TEST(RowSummary, RowsThatMeetCannotBeTold) {
  std::vector<Row> rows = {row_of("single", 1000), row_of("pipeline", 1004), row_of("ddp", 900)};
  std::vector<RowSummary> summaries = summarise(rows);
  EXPECT_THAT(summaries[0].cannot_tell, ElementsAre(rows[1].name));
  EXPECT_THAT(summaries[1].cannot_tell, ElementsAre(rows[0].name));
  EXPECT_THAT(summaries[2].cannot_tell, IsEmpty());
  rows[2].repetitions.resize(1);
  summaries = summarise(rows);
  EXPECT_THAT(summaries[2].cannot_tell, ElementsAre(rows[0].name, rows[1].name))
      << "one launch says little of the next";
  EXPECT_THAT(summaries[0].cannot_tell, Contains(rows[2].name));
}

/// Rows that are further apart than their launches, of each so many.
std::vector<RowSummary> rows_apart(std::size_t rows, std::size_t launches) {
  std::vector<Row> all;
  for (std::size_t row = 0; row < rows; ++row) {
    all.push_back(row_of("pipeline", 1000 + 100 * static_cast<double>(row)));
    all.back().name += "/row:" + std::to_string(row);
    all.back().repetitions.resize(launches, all.back().repetitions.front());
  }
  return summarise(all);
}

TEST(RowSummary, ManyRowsWantMoreLaunches) {
  EXPECT_THAT(rows_apart(2, 4)[0].cannot_tell, IsEmpty());
  EXPECT_THAT(rows_apart(2, 3)[0].cannot_tell, Not(IsEmpty()));
  EXPECT_THAT(rows_apart(7, 6)[0].cannot_tell, IsEmpty());
  EXPECT_THAT(rows_apart(8, 6)[0].cannot_tell, testing::SizeIs(7)) << "28 pairs, 2 / 924 each";
  EXPECT_THAT(rows_apart(8, 7)[0].cannot_tell, IsEmpty());
}

TEST(RowSummary, ADisturbedLaunchIsNoSampleWhileThereAreOthers) {
  std::vector<Row> rows = {row_of("single", 1000), row_of("pipeline", 900)};
  rows[0].repetitions[1].marks = {"disturbed"};
  std::vector<RowSummary> summaries = summarise(rows);
  EXPECT_THAT(summaries[0].samples_ms, ElementsAre(995, 996, 1004, 997, 1003));
  EXPECT_THAT(summaries[0].cannot_tell, IsEmpty())
      << "five and six launches are enough for one pair";
  for (Repetition& repetition : rows[0].repetitions) repetition.marks = {"disturbed"};
  summaries = summarise(rows);
  EXPECT_THAT(summaries[0].samples_ms, testing::SizeIs(6));
  EXPECT_THAT(summaries[0].cannot_tell, ElementsAre(rows[1].name));
  EXPECT_THAT(summaries[1].cannot_tell, ElementsAre(rows[0].name));
  EXPECT_EQ(summaries[1].speed_up(), nullptr) << "of a baseline that ran beside something";
  const std::vector<std::string> names = {"pipeline", "single"};
  EXPECT_THAT(
      verdicts({summaries[1], summaries[0]}, names),
      ElementsAre("cannot tell pipeline from single: every launch of single was disturbed"));
}

/// Two rows of six rounds, of which the first launches of each so many were disturbed.
std::vector<RowSummary> with_disturbed(double other_ms, std::size_t launches, double slowdown = 1) {
  std::vector<Row> rows = {row_of("single", 1000), row_of("pipeline", other_ms)};
  for (Row& row : rows) {
    row.config.emplace_back("repetitions", std::int64_t{6});
    for (std::size_t launch = 0; launch < launches; ++launch) {
      row.repetitions[launch].marks = {"disturbed"};
    }
  }
  for (std::size_t launch = 0; launch < launches; ++launch) {
    for (double& step : rows[1].repetitions[launch].step_ms) step *= slowdown;
  }
  return summarise(rows);
}

TEST(RowSummary, WhereCalmLaunchesAreTooFewAllOfTheRoundsDecideWithThem) {
  EXPECT_FALSE(compared_by_rounds(with_disturbed(900, 2)));
  const std::vector<RowSummary> rows = with_disturbed(900, 3);
  EXPECT_TRUE(compared_by_rounds(rows));
  EXPECT_THAT(rows[0].samples_ms, testing::SizeIs(3));
  EXPECT_THAT(rows[0].cannot_tell, IsEmpty()) << "three calm launches cannot say it, six can";
  EXPECT_THAT(with_disturbed(1000, 3)[0].cannot_tell, Not(IsEmpty()));
  EXPECT_THAT(with_disturbed(900, 5)[0].cannot_tell, Not(IsEmpty())) << "one calm launch of each";
  EXPECT_THAT(with_disturbed(900, 3, 1.2)[0].cannot_tell, Not(IsEmpty()))
      << "the disturbed ones contradict";
}

TEST(RowSummary, CalmLaunchesThatContradictTheOthersLeaveItOpen) {
  std::vector<Row> rows = {row_of("single", 1000), row_of("pipeline", 900)};
  for (Row& row : rows) row.config.emplace_back("repetitions", std::int64_t{12});
  for (Row& row : rows) {
    const std::vector<Repetition> six = row.repetitions;
    row.repetitions.insert(row.repetitions.end(), six.begin(), six.end());
    for (std::size_t launch = 3; launch < 12; ++launch) {
      row.repetitions[launch].marks = {"disturbed"};
    }
  }
  EXPECT_THAT(summarise(rows)[0].cannot_tell, IsEmpty());
  EXPECT_NE(summarise(rows)[1].speed_up(), nullptr);
  rows[1].repetitions[0].step_ms = {1100};
  EXPECT_THAT(summarise(rows)[0].cannot_tell, Not(IsEmpty()));
  EXPECT_NE(summarise(rows)[1].speed_up(), nullptr) << "two of three calm ones say the same";
  for (std::size_t calm : {1U, 2U}) rows[1].repetitions[calm].step_ms = {1100};
  EXPECT_EQ(summarise(rows)[1].speed_up(), nullptr);
}

TEST(RowSummary, NothingOfADisturbedLaunchIsInARowThatHasOthers) {
  std::vector<Row> rows = {row_of("pipeline", 1000)};
  for (Repetition& launch : rows[0].repetitions) launch.mfu = 0.5;
  const RowSummary calm = summarise(rows)[0];
  Repetition disturbed = rows[0].repetitions[0];
  disturbed.marks = {"disturbed"};
  disturbed.mfu = 0.1;
  disturbed.counters["tokens_per_second"] = 1;
  for (DeviceRecord& device : disturbed.devices) {
    device.breakdown_ms.compute *= 3;
    device.bubble.measured = 0.9;
  }
  for (int launch = 0; launch < 7; ++launch) rows[0].repetitions.push_back(disturbed);
  const RowSummary among = summarise(rows)[0];
  EXPECT_EQ(among.mfu, calm.mfu);
  EXPECT_EQ(among.bubble.measured, calm.bubble.measured);
  EXPECT_EQ(among.breakdown_ms->compute, calm.breakdown_ms->compute);
  EXPECT_EQ(among.tokens_per_second, calm.tokens_per_second);
}

TEST(RowSummary, APredictionIsNotHeldAgainstADisturbedRow) {
  std::vector<Row> rows = {row_of("pipeline", 1000)};
  for (Repetition& launch : rows[0].repetitions) launch.predicted_ms = 500;
  EXPECT_TRUE(summarise(rows)[0].prediction_error);
  for (Repetition& launch : rows[0].repetitions) launch.marks = {"disturbed"};
  EXPECT_FALSE(summarise(rows)[0].prediction_error);
  EXPECT_EQ(summarise(rows)[0].predicted_ms, 500);
}

TEST(RowSummary, LaunchesMadeAgainStandInForNoneOfTheRounds) {
  std::vector<Row> rows = {row_of("single", 1000), row_of("pipeline", 900)};
  for (Row& row : rows) {
    row.config.emplace_back("repetitions", std::int64_t{3});
    for (Repetition& launch : row.repetitions) launch.marks = {"disturbed"};
  }
  EXPECT_THAT(summarise(rows)[0].rounds_ms, testing::SizeIs(3));
}

TEST(RowSummary, OversubscribedRowsAreNotRankedAndTheirPredictionIsForOtherCores) {
  std::vector<Row> rows = {row_of("single", 1000), row_of("pipeline", 1000)};
  rows[1].repetitions[0].marks = {"oversubscribed"};
  rows[1].repetitions[0].predicted_ms = 500;
  const std::vector<RowSummary> summaries = summarise(rows);
  EXPECT_THAT(summaries[0].cannot_tell, IsEmpty());
  EXPECT_THAT(summaries[1].cannot_tell, IsEmpty());
  EXPECT_EQ(summaries[1].predicted_ms, 500);
  EXPECT_FALSE(summaries[1].prediction_error);
  EXPECT_NEAR(summaries[1].speed_up()->value, 1, 1e-4);
}

TEST(RowSummary, AFailedRowHasNoNumbers) {
  const RowSummary failed = summary_of(failed_row());
  EXPECT_THAT(*failed.error, HasSubstr("rank 0: device 1 overran"));
  EXPECT_THAT(*failed.error, Not(HasSubstr("\n")));
  EXPECT_THAT(failed.samples_ms, IsEmpty());
  EXPECT_FALSE(failed.baseline || failed.interval_ms);
  Row nothing = row_of("single", 100);
  nothing.repetitions.clear();
  EXPECT_EQ(summary_of(nothing).error, "not measured");
}

TEST(RowSummary, OneWrongLaunchIsAFailedVerification) {
  Row row = row_of("single", 100);
  EXPECT_EQ(summary_of(row).verification, "passed");
  row.repetitions[1].verification->passed = false;
  EXPECT_EQ(summary_of(row).verification, "failed");
  for (Repetition& repetition : row.repetitions) repetition.verification.reset();
  EXPECT_EQ(summary_of(row).verification, "not verified");
}

}  // namespace
}  // namespace stratagem::reports::row_summary_test
