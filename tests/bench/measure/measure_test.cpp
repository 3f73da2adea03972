#include "bench/measure/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "bench/measure/preparation.h"
#include "strategies/registry.h"
#include "tests/bench/fake_workers.h"

namespace stratagem::bench::measure_test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "test_pieces", .options = {"split_size"}, .multi_device = true});
// What devices are calibrated with.
STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "single"});
STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "test_whole"});

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

TEST_F(MeasureTest, ProvesBeforeItMeasuresAndPredictsAfterwards) {
  measure_rows({row(4)});
  EXPECT_THAT(notes_.phases, ElementsAre("checking", "calibrating", "verifying", "measuring",
                                         "calibrating stages", "proving"));
  const auto is = []<class Kind>(const Kind&) { return testing::VariantWith<Kind>(testing::_); };
  EXPECT_THAT(workers_.jobs, ElementsAre(is(CheckJob{}), is(CalibrateDeviceJob{}), is(VerifyJob{}),
                                         is(MeasureJob{}), is(MeasureJob{}),
                                         is(CalibrateStagesJob{}), is(ReferenceJob{})));
}

TEST_F(MeasureTest, WhatTheCheckSaysOfARowsDevicesIsShown) {
  workers_.on<CheckJob>([](const CheckJob& job) {
    return answered(CheckResult{{{.config = job.configs.front(), .stages = 2, .note = "unlike"}}});
  });
  measure_rows({row(4)});
  EXPECT_THAT(notes_.lines, Contains(HasSubstr("split:4")));
  EXPECT_THAT(notes_.lines, Contains(HasSubstr(": unlike")));
}

TEST_F(MeasureTest, WhoTakesTurnsPredictsNothing) {
  options_.turns = "somewhere";
  const Measurement measured = measure_rows({row(4)});
  EXPECT_FALSE(measured.interrupted);
  EXPECT_EQ(workers_.count<CalibrateStagesJob>(), 0u);
}

TEST_F(MeasureTest, AnInterruptedPredictionKeepsWhatWasMeasured) {
  workers_.on<CalibrateStagesJob>([](const CalibrateStagesJob&) -> FakeWorkers::Reply {
    return LaunchResult{.status = LaunchStatus::interrupted, .result = {}, .error = {}};
  });
  const Measurement measured = measure_rows({row(4)});
  EXPECT_TRUE(measured.interrupted);
  EXPECT_THAT(measured.results.rows[0].repetitions, SizeIs(2));
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].predicted_ms);
  EXPECT_EQ(exit_code(measured), 130);
}

TEST_F(MeasureTest, DoesNotPrepareTwice) {
  measure_rows({row(4), row(8)});
  const std::size_t before = workers_.jobs.size();
  Config more_steps = row(4);
  more_steps.steps = 9;
  measure_rows({more_steps, row(8)});
  EXPECT_EQ(workers_.count<VerifyJob>(), 2u);
  EXPECT_EQ(workers_.count<CalibrateDeviceJob>(), 1u);
  EXPECT_EQ(workers_.count<CalibrateStagesJob>(), 2u);
  EXPECT_EQ(workers_.count<CanaryJob>(), 2u);  // of now: of one device, and of two
  EXPECT_EQ(workers_.jobs.size() - before, 1u + 2u + 4u);
}

TEST_F(MeasureTest, PreparesAnewForAnotherBuild) {
  measure_rows({row(4)});
  MeasureEnvironment other = environment();
  other.identity = {{"build", "abd"}};
  measure({row(4)}, options_, other, notes_);
  EXPECT_EQ(workers_.count<VerifyJob>(), 2u);
}

TEST_F(MeasureTest, RefusesARowThatCannotWorkBeforeAnythingElse) {
  workers_.on<CheckJob>([](const CheckJob& job) {
    return answered(
        CheckResult{{{.config = job.configs.front()}, {.error = "--cut: no layer \"layer9\""}}});
  });
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
  workers_.on<CalibrateStagesJob>([](const CalibrateStagesJob&) {
    return answered(CalibrateStagesResult{.costs = {{"forward", 0, 4, false, 20, 9}}});
  });
  MeasureEnvironment own_cores = environment();
  own_cores.predict = [](const Config&, const StageCosts& costs) {
    return Prediction{costs.costs.front().ms};
  };
  const Measurement measured = measure({greedy}, options_, own_cores, notes_);
  const reports::Repetition& repetition = measured.results.rows[0].repetitions[0];
  EXPECT_THAT(repetition.marks, ElementsAre("oversubscribed"));
  EXPECT_EQ(repetition.predicted_ms, 9.0);  // on a machine with a core for each device
}

TEST_F(MeasureTest, AFailedRowIsNotLaunchedAgainAndTheOthersGoOn) {
  workers_.on<MeasureJob>([](const MeasureJob& job) -> FakeWorkers::Reply {
    if (job.config.split_size == 8) return FakeWorkers::failure("rank 0 was killed");
    return std::nullopt;
  });
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
  workers_.on<MeasureJob>([&](const MeasureJob&) -> FakeWorkers::Reply {
    if (++launches == 2) return FakeWorkers::failure("lost");
    return std::nullopt;
  });
  const Measurement measured = measure_rows({row(4)});
  ASSERT_THAT(measured.results.rows[0].repetitions, SizeIs(2));
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].error);
  EXPECT_EQ(measured.results.rows[0].repetitions[1].error->message, "lost");
  EXPECT_EQ(measured.results.rows[0].repetitions[1].index, 1);
}

TEST_F(MeasureTest, DoesNotTimeAWrongRow) {
  workers_.on<VerifyJob>([](const VerifyJob& job) -> FakeWorkers::Reply {
    if (job.config.split_size != 8) return std::nullopt;
    return answered(VerifyResult{.verification = {{.oracle = "one device",
                                                   .scope = "full size",
                                                   .max_relative_error = 0.25,
                                                   .tolerance = 1e-9,
                                                   .passed = false,
                                                   .message = "gradient of fc.weight"},
                                                  {}}});
  });
  const Measurement measured = measure_rows({row(4), row(8)});
  EXPECT_THAT(workers_.measured_splits(), ElementsAre(4, 4));
  const reports::Repetition& wrong = measured.results.rows[1].repetitions.front();
  EXPECT_FALSE(wrong.verification->passed);
  EXPECT_THAT(wrong.error->message, HasSubstr("verification failed"));
  EXPECT_THAT(wrong.error->message, HasSubstr("gradient of fc.weight"));
  EXPECT_EQ(exit_code(measured), 1);
}

TEST_F(MeasureTest, DoesNotTimeARowThatIsWrongInItsOwnArithmetic) {
  workers_.on<VerifyJob>([](const VerifyJob&) -> FakeWorkers::Reply {
    const reports::Verdict own{"reference kernels", "full size", 0.03, 4e-6, false, "fc1: output"};
    reports::Verification wrong{{"one device", "full size", 1e-15, 1e-9, false, "in float32, fc1"},
                                own};
    return answered(VerifyResult{.verification = wrong});
  });
  const Measurement measured = measure_rows({row(4)});
  EXPECT_THAT(workers_.measured_splits(), ElementsAre());
  EXPECT_EQ(measured.results.rows[0].repetitions.front().error->message,
            "verification failed: in float32, fc1");
  EXPECT_EQ(exit_code(measured), 1);
}

TEST_F(MeasureTest, AWrongRowIsVerifiedAgainNextTime) {
  workers_.on<VerifyJob>([](const VerifyJob&) { return answered(VerifyResult{}); });
  measure_rows({row(4)});
  measure_rows({row(4)});
  EXPECT_EQ(workers_.count<VerifyJob>(), 2u);
}

TEST_F(MeasureTest, ALostVerificationIsALossAndNotAMismatch) {
  workers_.on<VerifyJob>([](const VerifyJob&) { return FakeWorkers::failure("out of memory"); });
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(exit_code(measured), 4);
  EXPECT_THAT(workers_.measured_splits(), IsEmpty());
}

TEST_F(MeasureTest, LeavesVerificationOutWhenAsked) {
  Config config = row(4);
  config.verify = false;
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.count<VerifyJob>(), 0u);
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].verification);
  EXPECT_FALSE(workers_.last_measurement().first_loss);
}

TEST_F(MeasureTest, HandsTheVerifiedFirstLossToTheWorker) {
  workers_.on<VerifyJob>([](const VerifyJob&) {
    const reports::Verdict right{"one device", "full size", 1e-15, 1e-9, true, ""};
    return answered(
        VerifyResult{.verification = {right, {}}, .first_loss = {.value = 2.5, .tolerance = 1e-4}});
  });
  for (const char* where : {"verified now", "verified earlier"}) {
    SCOPED_TRACE(where);
    measure_rows({row(4)});
    const auto handed = workers_.last_measurement().first_loss;
    ASSERT_TRUE(handed);
    EXPECT_EQ(handed->value, 2.5);
    EXPECT_EQ(handed->tolerance, 1e-4);
  }
  EXPECT_EQ(workers_.count<VerifyJob>(), 1u);
}

TEST_F(MeasureTest, HandsThePeakOfADeviceToTheWorker) {
  Config config = row(4, "test_whole");
  config.cores_per_device = 2;
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.last_measurement().peak_gflops, 500.0);
  EXPECT_THAT(measured.results.context.calibration,
              Contains(testing::Pair("convolution_gflops", reports::Value(250.0))));
}

TEST_F(MeasureTest, MeasuresWithoutAPeakWhenCalibrationFails) {
  workers_.on<CalibrateDeviceJob>(
      [](const CalibrateDeviceJob&) { return FakeWorkers::failure("lost"); });
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(exit_code(measured), 0);
  EXPECT_FALSE(workers_.last_measurement().peak_gflops);
}

TEST_F(MeasureTest, PredictsRowsThatAreMadeOfStages) {
  const Measurement measured = measure_rows({row(4), row(4, "test_whole")});
  EXPECT_EQ(measured.results.rows[0].repetitions[0].predicted_ms, 40.0);
  EXPECT_FALSE(measured.results.rows[1].repetitions[0].predicted_ms);
}

TEST_F(MeasureTest, OtherKernelsAreProvedAndPricedForThemselves) {
  Config reference = row(4);
  reference.kernels = "reference";
  measure_rows({row(4)});
  measure_rows({reference});
  measure_rows({row(4), reference});
  std::vector<std::string> priced;
  std::vector<std::string> proved;
  for (const Job& job : workers_.jobs) {
    if (const auto* stages = std::get_if<CalibrateStagesJob>(&job)) {
      priced.push_back(stages->config.kernels.name());
    } else if (const auto* verify = std::get_if<VerifyJob>(&job)) {
      proved.push_back(verify->config.kernels.name());
    }
  }
  EXPECT_THAT(priced, ElementsAre("own", "reference"));
  EXPECT_THAT(proved, ElementsAre("own", "reference"));
  EXPECT_EQ(workers_.count<CalibrateDeviceJob>(), 1u) << "of the devices, whoever computes";
}

TEST_F(MeasureTest, AMixedRowIsHeldAgainstThePeakOfTheFormatThatItComputesIn) {
  workers_.on<CalibrateDeviceJob>([](const CalibrateDeviceJob& job) {
    return answered(
        CalibrateDeviceResult{.gemm_gflops = job.config.dtype == "bfloat16" ? 400.0 : 200.0});
  });
  Config mixed = row(4);
  mixed.mixed_precision = "bfloat16";
  measure_rows({row(4), mixed});
  std::map<std::string, double> peaks;
  for (const Job& job : workers_.jobs) {
    const auto* timed = std::get_if<MeasureJob>(&job);
    if (timed != nullptr) peaks[timed->config.mixed_precision.name()] = timed->peak_gflops.value();
  }
  EXPECT_EQ(peaks, (std::map<std::string, double>{{"none", 200}, {"bfloat16", 400}}));
}

TEST_F(MeasureTest, StagesThatTakeLongerAloneAreMeasuredAgain) {
  // One action may, by the noise of short ones; the stage as a whole may not.
  workers_.on<CalibrateStagesJob>([](const CalibrateStagesJob&) {
    return answered(
        CalibrateStagesResult{.costs = {{.kind = "copy_input", .ms = 1, .alone_ms = 3},
                                        {.kind = "forward", .ms = 40, .alone_ms = 48}}});
  });
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(workers_.count<CalibrateStagesJob>(), 1u);
  EXPECT_EQ(measured.results.rows[0].repetitions[0].predicted_from->doubt, "");

  workers_.on<CalibrateStagesJob>([](const CalibrateStagesJob&) {
    return answered(CalibrateStagesResult{
        .costs = {{.kind = "forward", .ms = 20, .alone_ms = 10},
                  {.kind = "forward", .stage = 1, .ms = 20, .alone_ms = 34},
                  {.kind = "backward", .stage = 1, .ms = 30, .alone_ms = 30}}});
  });
  const Measurement doubted = measure_rows({row(8)});
  EXPECT_EQ(workers_.count<CalibrateStagesJob>(), 1u + 3u);
  EXPECT_EQ(doubted.results.rows[0].repetitions[0].predicted_from->doubt,
            "stage 1 took 64.00 ms alone and 50.00 ms beside the others");
  EXPECT_EQ(doubted.results.rows[0].repetitions[0].predicted_ms, 200.0) << "it is said anyway";
}

TEST_F(MeasureTest, PredictsNothingWhenAsked) {
  Config config = row(4);
  config.predict = false;
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.count<CalibrateStagesJob>(), 0u);
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].predicted_ms);
  EXPECT_FALSE(measured.results.rows[0].repetitions[0].predicted_from);
}

TEST_F(MeasureTest, GoesOnWhereFinishedLaunchesCannotBeKept) {
  std::filesystem::create_symlink("/dev/full", partial());
  const Measurement measured = measure_rows({row(4)});
  EXPECT_THAT(measured.results.rows[0].repetitions, SizeIs(2));
  EXPECT_EQ(exit_code(measured), 0);
  EXPECT_THAT(notes_.lines, ElementsAre(HasSubstr("No space left on device")));
}

TEST_F(MeasureTest, TwoRunsDoNotWriteOneFile) {
  const PartialFile other(partial());
  EXPECT_THROW(measure_rows({row(4)}), std::invalid_argument);
  EXPECT_EQ(workers_.count<MeasureJob>(), 0u);
}

TEST_F(MeasureTest, AResultThatCannotBeReadIsAFailureThatNamesTheField) {
  workers_.on<MeasureJob>([](const MeasureJob&) {
    return LaunchResult{.status = LaunchStatus::ok, .result = {{"trace", 1}}, .error = {}};
  });
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(measured.results.rows[0].repetitions[0].error->message,
            "measure result: repetitions: is missing");
}

TEST_F(MeasureTest, AKeptResultThatCannotBeReadIsAskedForAgain) {
  measure_rows({row(4)});
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
    json kept = json::parse(std::ifstream(entry.path()));
    kept["answer"].erase(kept["answer"].begin());
    std::ofstream(entry.path()) << kept;
  }
  measure_rows({row(4)});
  EXPECT_EQ(workers_.count<VerifyJob>(), 2u);
  EXPECT_EQ(workers_.count<CalibrateDeviceJob>(), 2u);
  EXPECT_EQ(workers_.count<CalibrateStagesJob>(), 2u);
}

TEST_F(MeasureTest, TakesAllRepetitionsOfATutorialLaunch) {
  Config config = row(4);
  config.protocol = "tutorial";
  config.repetitions = 3;
  workers_.on<MeasureJob>([](const MeasureJob&) {
    return answered(
        MeasureResult{.repetitions = {FakeWorkers::repetition(1), FakeWorkers::repetition(2),
                                      FakeWorkers::repetition(3)}});
  });
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.count<MeasureJob>(), 1u);
  ASSERT_THAT(measured.results.rows[0].repetitions, SizeIs(3));
  EXPECT_EQ(measured.results.rows[0].repetitions[2].index, 2);
  EXPECT_EQ(measured.results.rows[0].repetitions[2].step_ms.front(), 3);
}

TEST_F(MeasureTest, AnErrorInsideARepetitionIsAFailure) {
  workers_.on<MeasureJob>([](const MeasureJob&) {
    reports::Repetition repetition = FakeWorkers::repetition(1);
    repetition.error =
        reports::Error{.rank = 0, .host = "", .last_action = "", .message = "loss differs"};
    return answered(MeasureResult{.repetitions = {repetition}});
  });
  const Measurement measured = measure_rows({row(4)});
  EXPECT_EQ(workers_.count<MeasureJob>(), 1u);
  EXPECT_EQ(measured.results.rows[0].repetitions[0].error->message, "loss differs");
}

TEST_F(MeasureTest, AsksForATraceOnce) {
  options_.trace = true;
  workers_.on<MeasureJob>([](const MeasureJob& job) {
    MeasureResult result{.repetitions = {FakeWorkers::repetition(1)}};
    if (job.trace) result.trace = {{0, "forward", 0, 0, 5.0, 6.0}};
    return answered(result);
  });
  const Measurement measured = measure_rows({row(4)});
  ASSERT_THAT(measured.traces, SizeIs(1));
  EXPECT_THAT(measured.traces[0].events, SizeIs(1));
  EXPECT_FALSE(workers_.last_measurement().trace);
}

TEST_F(MeasureTest, TheFirstLaunchOfARowShowsItsMemory) {
  workers_.on<MeasureJob>([](const MeasureJob& job) {
    MeasureResult result{.repetitions = {FakeWorkers::repetition(1)}};
    if (job.memory) result.repetitions[0].memory_curve = {curve_of(0, 0, {{0, {}, 1}})};
    return answered(result);
  });
  MeasureEnvironment predicting = environment();
  predicting.predict = [](const Config&, const StageCosts&) {
    return Prediction{.step_ms = 1, .memory = {{{0, {{"other", 5}}, 7}}}};
  };
  const auto row_found = measure({row(4)}, options_, predicting, notes_).results.rows.at(0);
  ASSERT_THAT(row_found.repetitions, SizeIs(2));
  EXPECT_THAT(row_found.repetitions[0].memory_curve, SizeIs(1));
  ASSERT_THAT(row_found.repetitions[0].predicted_memory_curve, SizeIs(1));
  EXPECT_THAT(row_found.repetitions[0].predicted_memory_curve[0].most_bytes, ElementsAre(7));
  EXPECT_TRUE(row_found.repetitions[1].memory_curve.empty());
  EXPECT_TRUE(row_found.repetitions[1].predicted_memory_curve.empty());
}

TEST_F(MeasureTest, ACrashWhileCheckingIsALoss) {
  workers_.on<CheckJob>([](const CheckJob&) { return FakeWorkers::failure("no memory"); });
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
}  // namespace stratagem::bench::measure_test
