#include "bench/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "bench/options.h"
#include "bench/partial_file.h"
#include "bench/preparation.h"
#include "bench/round_order.h"
#include "reports/results_reader.h"
#include "strategies/registry.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

const strategies::StrategyRegistration pieces{{.name = "test_pieces",
                                               .summary = "",
                                               .options = {"split_size"},
                                               .multi_device = true,
                                               .make = {}}};
const strategies::StrategyRegistration whole{
    {.name = "test_whole", .summary = "", .options = {}, .multi_device = false, .make = {}}};

/// Stands for the worker processes: answers every task and remembers what it was asked.
class FakeWorkers {
 public:
  LaunchResult operator()(const json& job) {
    const std::string task = job["task"];
    jobs.push_back(job);
    if (const auto found = replies.find(task); found != replies.end()) {
      if (auto reply = found->second(job)) return *reply;
    }
    return {.status = LaunchStatus::ok, .result = answer(task, job), .error = {}};
  }

  std::size_t count(const std::string& task) const {
    return static_cast<std::size_t>(std::count_if(
        jobs.begin(), jobs.end(), [&](const json& job) { return job["task"] == task; }));
  }

  /// The split sizes of the measurements, in order.
  std::vector<std::int64_t> measured_splits() const {
    std::vector<std::int64_t> splits;
    for (const json& job : jobs) {
      if (job["task"] == "measure") splits.push_back(job["config"]["split_size"]);
    }
    return splits;
  }

  std::vector<json> jobs;
  std::map<std::string, std::function<std::optional<LaunchResult>(const json&)>> replies;

 private:
  static json answer(const std::string& task, const json& job) {
    if (task == "check") {
      json configs = json::array();
      for (const json& config : job["configs"])
        configs.push_back({{"config", config}, {"stages", 2}});
      return {{"configs", configs}};
    }
    if (task == "verify") {
      return {{"oracle", "one device"}, {"scope", "full size"}, {"max_relative_error", 1e-15},
              {"tolerance", 1e-9},      {"passed", true},       {"message", ""}};
    }
    if (task == "calibrate_device") return {{"gemm_gflops", 100.0}, {"convolution_gflops", 250.0}};
    if (task == "calibrate_stages") return {{"costs", {job["config"]["split_size"]}}};
    return {{"repetition", repetition(100.0 + job["config"]["split_size"].get<double>())}};
  }

 public:
  static json repetition(double step_ms) {
    return {{"step_ms", {step_ms}}, {"per_rank_ms", {{step_ms}}}, {"loss", {1.0}}};
  }
  static LaunchResult failure(const std::string& message) {
    LaunchResult launched;
    launched.error.message = message;
    return launched;
  }
};

class Notes : public Observer {
 public:
  void note(const std::string& line) override { lines.push_back(line); }
  void phase(const std::string& name, std::size_t) override { phases.push_back(name); }
  std::vector<std::string> lines;
  std::vector<std::string> phases;
};

class MeasureTest : public testing::Test {
 protected:
  MeasureTest() : folder_(testing::TempDir() + "measure_test_" + std::to_string(getpid())) {
    fs::create_directories(folder_);
    options_.out = folder_ / "results.json";
    options_.command_line = "stratagem run";
  }
  ~MeasureTest() override { fs::remove_all(folder_); }

  static Config row(std::int64_t split, const std::string& strategy = "test_pieces") {
    Config config;
    config.strategy = strategy;
    config.model = "test_model";
    config.split_size = split;
    config.repetitions = 2;
    return config;
  }

  MeasureEnvironment environment() {
    MeasureEnvironment result;
    result.launch = [this](const json& job, std::chrono::duration<double>) {
      return workers_(job);
    };
    result.predict = [](const Config&, const json& costs) { return costs[0].get<double>() * 10; };
    result.predict_from_two = [](const Config&, const json& first, const json& second) {
      return first[0].get<double>() * 1000 + second[0].get<double>();
    };
    result.catalogue.strategies = {
        {.name = "test_pieces", .options = {"split_size"}, .multi_device = true},
        {.name = "test_whole", .options = {}, .multi_device = false}};
    result.catalogue.models = {{.name = "test_model", .has_images = false}};
    result.cache = Cache(folder_ / "cache");
    result.identity = {{"build", "abc"}};
    result.build = "abc";
    result.cores = {0, 1};
    result.lock_folder = folder_;
    return result;
  }

  Measurement measure_rows(const std::vector<Config>& rows) {
    return measure(rows, options_, environment(), notes_);
  }

  fs::path partial() const { return partial_path(options_.out); }

  fs::path folder_;
  FakeWorkers workers_;
  MeasureOptions options_;
  Notes notes_;
};

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
  EXPECT_FALSE(fs::exists(partial()));
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
  const Measurement measured = measure_rows({greedy});
  EXPECT_THAT(measured.results.rows[0].repetitions[0].marks, ElementsAre("oversubscribed"));
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

/// Stops as Ctrl-C does, once a number of launches were made.
auto interrupt_after(int launches) {
  return [launches, made = 0](const json&) mutable -> std::optional<LaunchResult> {
    if (made++ < launches) return std::nullopt;
    return LaunchResult{.status = LaunchStatus::interrupted, .result = {}, .error = {}};
  };
}

TEST_F(MeasureTest, KeepsWhatIsFinishedAndGoesOnFromIt) {
  workers_.replies["measure"] = interrupt_after(3);
  const Measurement stopped = measure_rows({row(4), row(8)});
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.finished_launches, 3u);
  EXPECT_EQ(stopped.planned_launches, 4u);
  EXPECT_EQ(exit_code(stopped), 130);
  EXPECT_TRUE(fs::exists(partial()));
  EXPECT_FALSE(fs::exists(options_.out));

  workers_.replies.clear();
  workers_.jobs.clear();
  options_.resume = true;
  const Measurement resumed = measure_rows({row(4), row(8)});
  EXPECT_EQ(workers_.count("measure"), 1u);
  for (const reports::Row& each : resumed.results.rows) EXPECT_THAT(each.repetitions, SizeIs(2));
  write_results_and_clean_up(options_.out, resumed.results);
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_THAT(reports::read_results(options_.out.string()).rows, SizeIs(2));
}

TEST_F(MeasureTest, ARunWithoutResumeBeginsAnew) {
  workers_.replies["measure"] = interrupt_after(3);
  measure_rows({row(4), row(8)});
  workers_.replies.clear();
  workers_.jobs.clear();
  measure_rows({row(4), row(8)});
  EXPECT_EQ(workers_.count("measure"), 4u);
}

TEST_F(MeasureTest, RefusesToGoOnWithOtherRows) {
  workers_.replies["measure"] = interrupt_after(1);
  measure_rows({row(4), row(8)});
  workers_.replies.clear();
  options_.resume = true;
  EXPECT_THROW(measure_rows({row(4), row(16)}), std::invalid_argument);
}

TEST_F(MeasureTest, GoesOnWithMoreRounds) {
  workers_.replies["measure"] = interrupt_after(1);
  measure_rows({row(4)});
  workers_.replies.clear();
  workers_.jobs.clear();
  options_.resume = true;
  Config more = row(4);
  more.repetitions = 4;
  const Measurement resumed = measure_rows({more});
  EXPECT_EQ(workers_.count("measure"), 3u);
  EXPECT_THAT(resumed.results.rows[0].repetitions, SizeIs(4));
}

TEST_F(MeasureTest, AFailedRowIsTriedAgainWhenResumed) {
  workers_.replies["measure"] = [](const json&) { return FakeWorkers::failure("lost"); };
  measure_rows({row(4)});
  workers_.replies.clear();
  options_.resume = true;
  EXPECT_EQ(exit_code(measure_rows({row(4)})), 0);
}

TEST_F(MeasureTest, AnInterruptBeforeTheFirstLaunchMeasuresNothing) {
  workers_.replies["verify"] = interrupt_after(0);
  EXPECT_THROW(measure_rows({row(4)}), Interrupted);
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

TEST(RoundOrder, IsDrawnFromTheSeed) {
  const std::vector<std::int64_t> rounds(8, 3);
  EXPECT_EQ(random_order(rounds, 1), random_order(rounds, 1));
  EXPECT_NE(random_order(rounds, 1), random_order(rounds, 2));
}

TEST(RoundOrder, HasEveryRowOnceARoundAndARoundAtATime) {
  const auto order = random_order({3, 3, 1}, 7);
  ASSERT_THAT(order, SizeIs(7));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end(), [](const auto& left, const auto& right) {
    return left.round < right.round;
  }));
  for (std::size_t row = 0; row < 3; ++row) {
    const auto of_row = std::count_if(
        order.begin(), order.end(), [&](const PlannedLaunch& launch) { return launch.row == row; });
    EXPECT_EQ(of_row, row == 2 ? 1 : 3);
  }
}

TEST(RoundOrder, DiffersFromRoundToRound) {
  const auto order = random_order(std::vector<std::int64_t>(10, 2), 3);
  std::vector<std::size_t> first;
  std::vector<std::size_t> second;
  for (const PlannedLaunch& launch : order)
    (launch.round == 0 ? first : second).push_back(launch.row);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace stratagem::bench
