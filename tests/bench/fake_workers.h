// Worker processes that answer at once, for the tests of what the controller makes of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/measure.h"
#include "bench/measure/partial_file.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench {

/// A worker's answer.
inline LaunchResult answered(const JobResult& result) {
  return {.status = LaunchStatus::ok, .result = to_json(result), .error = {}};
}

/// The same, of a job that was timed.
inline LaunchResult answered(const JobResult& result, const reports::Conditions& conditions) {
  LaunchResult launched = answered(result);
  launched.conditions = conditions;
  return launched;
}

/// On a machine where the canary takes so long before and after.
inline reports::Conditions canary(double before_ms, double after_ms) {
  return {.canary_before_ms = {before_ms, before_ms - 1},
          .canary_after_ms = {after_ms - 1, after_ms},
          .other_processes_cores = 0.0};
}

/// Stands for the worker processes: answers every job and remembers what it was asked.
class FakeWorkers {
 public:
  using Reply = std::optional<LaunchResult>;

  LaunchResult operator()(const Job& job) {
    jobs.push_back(job);
    if (const auto found = replies_.find(job.index()); found != replies_.end()) {
      if (Reply reply = found->second(job)) return *reply;
    }
    return std::visit([](const auto& own) { return answered(answer(own)); }, job);
  }

  /// What is answered to jobs of a kind; where there is no reply, the usual.
  template <class Kind>
  void on(std::function<Reply(const Kind&)> reply) {
    replies_[Job(Kind{}).index()] = [reply = std::move(reply)](const Job& job) {
      return reply(std::get<Kind>(job));
    };
  }

  void forget() {
    jobs.clear();
    replies_.clear();
  }

  template <class Kind>
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        jobs, [](const Job& job) { return std::holds_alternative<Kind>(job); }));
  }

  MeasureJob last_measurement() const {
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
      if (const auto* measured = std::get_if<MeasureJob>(&*job)) return *measured;
    }
    throw std::logic_error("nothing was measured");
  }

  /// The split sizes of the measurements, in order.
  std::vector<std::int64_t> measured_splits() const {
    std::vector<std::int64_t> splits;
    for (const Job& job : jobs) {
      if (const auto* measured = std::get_if<MeasureJob>(&job)) {
        splits.push_back(measured->config.split_size);
      }
    }
    return splits;
  }

  std::vector<Job> jobs;

  static reports::Repetition repetition(double step_ms) {
    reports::Repetition repetition;
    repetition.step_ms = {step_ms};
    repetition.per_rank_ms = {{step_ms}};
    repetition.loss = {1.0};
    return repetition;
  }
  /// Of two steps that are right.
  static Evidence evidence() { return {.loss = {2.0, 1.0}, .skipped = {}, .state = state(3)}; }
  /// The same steps of one device.
  static Reference reference(const ReferenceJob& job) {
    Trajectory trajectory{.loss = {2.0, 1.0}, .states = {{0, state(1)}}};
    trajectory.loss.resize(static_cast<std::size_t>(job.lengths.back()), 1.0);
    for (const std::int64_t steps : job.lengths) trajectory.states.push_back({steps, state(3)});
    return {.exact = trajectory,
            .rounded = trajectory,
            .roundoff = 0x1p-24,
            .loss_tolerance = 1e-4,
            .oracle = "one device"};
  }
  static Fingerprints state(double weight) {
    return {{"weight",
             {.squares = weight * weight,
              .projected = std::vector<double>(Fingerprint::projections, weight)}}};
  }
  static LaunchResult failure(const std::string& message) {
    LaunchResult launched;
    launched.error.message = message;
    return launched;
  }

 private:
  static CheckResult answer(const CheckJob& job) {
    CheckResult result;
    for (const Config& config : job.configs) {
      result.rows.push_back({.config = config, .stages = 2});
    }
    return result;
  }
  static VerifyResult answer(const VerifyJob&) {
    return {.verification = {{.oracle = "one device",
                              .scope = "full size",
                              .max_relative_error = 1e-15,
                              .tolerance = 1e-9,
                              .passed = true,
                              .message = ""},
                             {}}};
  }
  static CanaryResult answer(const CanaryJob&) { return {}; }
  static TrainResult answer(const TrainJob&) { return {}; }
  static CalibrateDeviceResult answer(const CalibrateDeviceJob&) {
    return {.gemm_gflops = 100, .convolution_gflops = 250};
  }
  /// An action that takes as long as there are samples in a micro-batch.
  static CalibrateStagesResult answer(const CalibrateStagesJob& job) {
    return {.costs = {{.kind = "forward", .ms = static_cast<double>(job.config.split_size)}}};
  }
  static MeasureResult answer(const MeasureJob& job) {
    MeasureResult result{
        .repetitions = {repetition(100 + static_cast<double>(job.config.split_size))}};
    if (job.evidence) result.evidence = {evidence()};
    return result;
  }
  static ReferenceResult answer(const ReferenceJob& job) { return {.reference = reference(job)}; }
  static CollectivesResult answer(const CollectivesJob&) { return {}; }

  std::map<std::size_t, std::function<Reply(const Job&)>> replies_;  // by kind
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
  MeasureTest() {
    options_.out = folder_ / "results.json";
    options_.command_line = "stratagem run";
  }

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
    result.launch = [this](const Job& job) { return workers_(job); };
    result.predict = [](const Config&, const StageCosts& costs) {
      return Prediction{costs.costs.front().ms * 10};
    };
    result.catalogue.strategies = {
        {.name = "test_pieces", .options = {"split_size"}, .multi_device = true},
        {.name = "test_whole"}};
    result.catalogue.models = {{.name = "test_model", .input_kind = models::InputKind::vector}};
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

  std::filesystem::path partial() const { return partial_path(options_.out); }

  /// Makes all that the cache keeps so much older.
  void age_by(double seconds) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
      nlohmann::json kept = nlohmann::json::parse(std::ifstream(entry.path()));
      kept["time"] = kept["time"].get<double>() - seconds;
      std::ofstream(entry.path()) << kept;
    }
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  FakeWorkers workers_;
  MeasureOptions options_;
  Notes notes_;
};

}  // namespace stratagem::bench
