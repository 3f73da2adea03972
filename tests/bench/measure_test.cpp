#include "bench/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/predict.h"
#include "bench/preparation.h"
#include "strategies/registry.h"
#include "tests/bench/fake_workers.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const strategies::StrategyRegistration pieces{{.name = "test_pieces",
                                               .summary = "",
                                               .options = {"split_size"},
                                               .multi_device = true,
                                               .make = {}}};
const strategies::StrategyRegistration whole{
    {.name = "test_whole", .summary = "", .options = {}, .multi_device = false, .make = {}}};

TEST_F(MeasureTest, LaunchesEveryRowInEveryRound) {
  const Measurement measured = measure_rows({row(4), row(8), row(16)});
  ASSERT_THAT(measured.results.rows, SizeIs(3));
  for (const reports::Row& each : measured.results.rows) {
    ASSERT_THAT(each.repetitions, SizeIs(2)) << each.name;
    EXPECT_EQ(each.repetitions[0].index, 0);
    EXPECT_EQ(each.repetitions[1].index, 1);
  }
  EXPECT_EQ(measured.results.rows[1].repetitions[0].step_ms.front(), 108);
  const auto splits = workers_.measured_splits();
  ASSERT_THAT(splits, SizeIs(6));
  EXPECT_THAT(std::vector(splits.begin(), splits.begin() + 3),
              testing::UnorderedElementsAre(4, 8, 16));
  EXPECT_EQ(exit_code(measured), 0);
}

TEST_F(MeasureTest, PreparesBeforeItMeasures) {
  measure_rows({row(4)});
  EXPECT_THAT(notes_.phases, ElementsAre("checking", "calibrating", "verifying",
                                         "calibrating stages", "measuring"));
  std::vector<std::string> tasks;
  for (const json& job : workers_.jobs) tasks.push_back(job["task"]);
  EXPECT_THAT(tasks, ElementsAre("check", "calibrate_device", "verify", "calibrate_stages",
                                 "measure", "measure"));
}

TEST_F(MeasureTest, DoesNotPrepareTwice) {
  measure_rows({row(4), row(8)});
  const std::size_t before = workers_.jobs.size();
  Config more_steps = row(4);
  more_steps.steps = 9;
  measure_rows({more_steps, row(8)});
  EXPECT_EQ(workers_.count("verify"), 2u);
  EXPECT_EQ(workers_.count("calibrate_device"), 1u);
  EXPECT_EQ(workers_.count("calibrate_stages"), 2u);
  EXPECT_EQ(workers_.jobs.size() - before, 1u + 4u);
}

TEST_F(MeasureTest, PreparesAnewForAnotherBuild) {
  measure_rows({row(4)});
  MeasureEnvironment other = environment();
  other.identity = {{"build", "abd"}};
  measure({row(4)}, options_, other, notes_);
  EXPECT_EQ(workers_.count("verify"), 2u);
}

TEST_F(MeasureTest, RefusesARowThatCannotWorkBeforeAnythingElse) {
  workers_.replies["check"] = [](const json& job) {
    return LaunchResult{
        .status = LaunchStatus::ok,
        .result = {{"configs",
                    {{{"config", job["configs"][0]}}, {{"error", "--cut: no layer \"layer9\""}}}}},
        .error = {}};
  };
  try {
    measure_rows({row(4), row(8)});
    FAIL() << "measured a row that cannot work";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("split:8"));
    EXPECT_THAT(error.what(), HasSubstr("--cut: no layer \"layer9\""));
  }
  EXPECT_THAT(workers_.jobs, SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(MeasureTest, RefusesTooFewCores) {
  Config greedy = row(4);
  greedy.devices = 4;
  EXPECT_THROW(measure_rows({greedy}), std::invalid_argument);
  EXPECT_THAT(workers_.jobs, IsEmpty());
}

TEST_F(MeasureTest, MarksWhatIsOversubscribed) {
  Config greedy = row(4);
  greedy.devices = 4;
  greedy.oversubscribe = true;
  workers_.replies["calibrate_stages"] = [](const json&) {
    const std::vector<ActionCost> costs = {{"forward", 0, 4, false, 20, 9}};
    return LaunchResult{
        .status = LaunchStatus::ok, .result = {{"costs", costs_to_json(costs)}}, .error = {}};
  };
  MeasureEnvironment own_cores = environment();
  own_cores.predict = [](const Config&, const json& costs) {
    return costs_from_json(costs).front().ms;
  };
  const Measurement measured = measure({greedy}, options_, own_cores, notes_);
  const reports::Repetition& repetition = measured.results.rows[0].repetitions[0];
  EXPECT_THAT(repetition.marks, ElementsAre("oversubscribed"));
  EXPECT_EQ(repetition.predicted_ms, 9.0);  // on a machine with a core for each device
}

TEST_F(MeasureTest, AFailedRowIsNotLaunchedAgainAndTheOthersGoOn) {
  workers_.replies["measure"] = [](const json& job) -> std::optional<LaunchResult> {
    if (job["config"]["split_size"] == 8) return FakeWorkers::failure("rank 0 was killed");
    return std::nullopt;
  };
  const Measurement measured = measure_rows({row(4), row(8), row(16)});
  EXPECT_THAT(workers_.measured_splits(), SizeIs(5));
  EXPECT_THAT(measured.results.rows[0].repetitions, SizeIs(2));
  ASSERT_THAT(measured.results.rows[1].repetitions, SizeIs(1));
  EXPECT_EQ(measured.results.rows[1].repetitions[0].error->message, "rank 0 was killed");
  EXPECT_THAT(measured.results.rows[2].repetitions, SizeIs(2));
  EXPECT_THAT(notes_.lines, Contains(HasSubstr("rank 0 was killed")));
  EXPECT_EQ(exit_code(measured), 4);
}

TEST_F(MeasureTest, KeepsTheRoundsBeforeAFailure) {
  int launches = 0;
  workers_.replies["measure"] = [&](const json&) -> std::optional<LaunchResult> {
    if (++launches == 2) return FakeWorkers::failure("lost");
    return std::nullopt;
  };
  const Measurement measured = measure_rows({row(4)});
  ASSERT_THAT(measured.results.rows[0].repetitions, SizeIs(2));
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].error);
  EXPECT_EQ(measured.results.rows[0].repetitions[1].error->message, "lost");
  EXPECT_EQ(measured.results.rows[0].repetitions[1].index, 1);
}

TEST_F(MeasureTest, DoesNotTimeAWrongRow) {
  workers_.replies["verify"] = [](const json& job) -> std::optional<LaunchResult> {
    if (job["config"]["split_size"] != 8) return std::nullopt;
    return LaunchResult{.status = LaunchStatus::ok,
                        .result = {{"oracle", "one device"},
                                   {"scope", "full size"},
                                   {"max_relative_error", 0.25},
                                   {"tolerance", 1e-9},
                                   {"passed", false},
                                   {"message", "gradient of fc.weight"}},
                        .error = {}};
  };
  const Measurement measured = measure_rows({row(4), row(8)});
  EXPECT_THAT(workers_.measured_splits(), ElementsAre(4, 4));
  const reports::Repetition& wrong = measured.results.rows[1].repetitions.front();
  EXPECT_FALSE(wrong.verification->passed);
  EXPECT_THAT(wrong.error->message, HasSubstr("verification failed"));
  EXPECT_THAT(wrong.error->message, HasSubstr("gradient of fc.weight"));
  EXPECT_EQ(exit_code(measured), 1);
}

TEST_F(MeasureTest, AWrongRowIsVerifiedAgainNextTime) {
  workers_.replies["verify"] = [](const json&) -> std::optional<LaunchResult> {
    return LaunchResult{.status = LaunchStatus::ok, .result = {{"passed", false}}, .error = {}};
  };
  measure_rows({row(4)});
  measure_rows({row(4)});
  EXPECT_EQ(workers_.count("verify"), 2u);
}

TEST_F(MeasureTest, ALostVerificationIsALossAndNotAMismatch) {
  workers_.replies["verify"] = [](const json&) { return FakeWorkers::failure("out of memory"); };
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(exit_code(measured), 4);
  EXPECT_THAT(workers_.measured_splits(), IsEmpty());
}

TEST_F(MeasureTest, LeavesVerificationOutWhenAsked) {
  Config config = row(4);
  config.verify = false;
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.count("verify"), 0u);
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].verification);
  EXPECT_TRUE(workers_.jobs.back()["verification"].is_null());
}

TEST_F(MeasureTest, HandsThePeakOfADeviceToTheWorker) {
  Config config = row(4, "test_whole");
  config.cores_per_device = 2;
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.jobs.back()["peak_gflops"], 500.0);
  EXPECT_THAT(measured.results.context.calibration,
              Contains(testing::Pair("convolution_gflops", reports::Value(250.0))));
}

TEST_F(MeasureTest, MeasuresWithoutAPeakWhenCalibrationFails) {
  workers_.replies["calibrate_device"] = [](const json&) { return FakeWorkers::failure("lost"); };
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(exit_code(measured), 0);
  EXPECT_TRUE(workers_.jobs.back()["peak_gflops"].is_null());
}

TEST_F(MeasureTest, PredictsRowsThatAreMadeOfStages) {
  const Measurement measured = measure_rows({row(4), row(4, "test_whole")});
  EXPECT_EQ(measured.results.rows[0].repetitions[0].predicted_ms, 40.0);
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].predicted_from_two_splits_ms);
  EXPECT_FALSE(measured.results.rows[1].repetitions[0].predicted_ms);
}

TEST_F(MeasureTest, PredictsEverySplitFromTwoOfThem) {
  const Measurement measured = measure_rows({row(1), row(2), row(8), row(16), row(24)});
  for (const reports::Row& each : measured.results.rows) {
    EXPECT_EQ(each.repetitions[0].predicted_from_two_splits_ms, 2016.0) << each.name;
  }
}

TEST(TwoCalibrationSplits, LeaveTheEndsOutWhereThereAreEnough) {
  EXPECT_FALSE(two_calibration_splits({1, 2}));
  EXPECT_EQ(two_calibration_splits({8, 1, 4}), std::pair(std::size_t{1}, std::size_t{0}));
  EXPECT_EQ(two_calibration_splits({24, 1, 2, 16}), std::pair(std::size_t{2}, std::size_t{3}));
}

TEST_F(MeasureTest, TakesAllRepetitionsOfATutorialLaunch) {
  Config config = row(4);
  config.protocol = "tutorial";
  config.repetitions = 3;
  workers_.replies["measure"] = [](const json&) {
    return LaunchResult{.status = LaunchStatus::ok,
                        .result = {{"repetitions",
                                    {FakeWorkers::repetition(1), FakeWorkers::repetition(2),
                                     FakeWorkers::repetition(3)}}},
                        .error = {}};
  };
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.count("measure"), 1u);
  ASSERT_THAT(measured.results.rows[0].repetitions, SizeIs(3));
  EXPECT_EQ(measured.results.rows[0].repetitions[2].index, 2);
  EXPECT_EQ(measured.results.rows[0].repetitions[2].step_ms.front(), 3);
}

TEST_F(MeasureTest, AnErrorInsideARepetitionIsAFailure) {
  workers_.replies["measure"] = [](const json&) {
    json repetition = FakeWorkers::repetition(1);
    repetition["error"] = {
        {"rank", 0}, {"host", ""}, {"last_action", ""}, {"message", "loss differs"}};
    return LaunchResult{
        .status = LaunchStatus::ok, .result = {{"repetition", repetition}}, .error = {}};
  };
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(workers_.count("measure"), 1u);
  EXPECT_EQ(measured.results.rows[0].repetitions[0].error->message, "loss differs");
}

TEST_F(MeasureTest, AsksForATraceOnce) {
  options_.trace = true;
  workers_.replies["measure"] = [](const json& job) {
    json result{{"repetition", FakeWorkers::repetition(1)}};
    if (job["trace"]) {
      result["trace"] = {{{"device", 0},
                          {"kind", "forward"},
                          {"stage", 0},
                          {"micro_batch", 0},
                          {"start_ms", 5.0},
                          {"end_ms", 6.0}}};
    }
    return LaunchResult{.status = LaunchStatus::ok, .result = result, .error = {}};
  };
  const Measurement measured = measure_rows({row(4)});
  ASSERT_THAT(measured.traces, SizeIs(1));
  EXPECT_THAT(measured.traces[0].events, SizeIs(1));
  EXPECT_FALSE(workers_.jobs.back()["trace"].get<bool>());
}

TEST_F(MeasureTest, ACrashWhileCheckingIsALoss) {
  workers_.replies["check"] = [](const json&) { return FakeWorkers::failure("no memory"); };
  EXPECT_THROW(measure_rows({row(4)}), WorkerFailure);
}

TEST_F(MeasureTest, BlockOrderKeepsTheRoundsOfARowTogether) {
  Config first = row(4);
  Config second = row(8);
  first.order = second.order = "block";
  measure_rows({first, second});
  EXPECT_THAT(workers_.measured_splits(), ElementsAre(4, 4, 8, 8));
}

}  // namespace
}  // namespace stratagem::bench
