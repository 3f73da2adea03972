// Worker processes that answer at once, for the tests of what the controller makes of them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/partial_file.h"

namespace stratagem::bench {

/// Stands for the worker processes: answers every task and remembers what it was asked.
class FakeWorkers {
 public:
  LaunchResult operator()(const nlohmann::json& job) {
    const std::string task = job["task"];
    jobs.push_back(job);
    if (const auto found = replies.find(task); found != replies.end()) {
      if (auto reply = found->second(job)) return *reply;
    }
    return {.status = LaunchStatus::ok, .result = answer(task, job), .error = {}};
  }

  std::size_t count(const std::string& task) const {
    return static_cast<std::size_t>(std::count_if(
        jobs.begin(), jobs.end(), [&](const nlohmann::json& job) { return job["task"] == task; }));
  }

  /// The split sizes of the measurements, in order.
  std::vector<std::int64_t> measured_splits() const {
    std::vector<std::int64_t> splits;
    for (const nlohmann::json& job : jobs) {
      if (job["task"] == "measure") splits.push_back(job["config"]["split_size"]);
    }
    return splits;
  }

  std::vector<nlohmann::json> jobs;
  std::map<std::string, std::function<std::optional<LaunchResult>(const nlohmann::json&)>> replies;

 private:
  static nlohmann::json answer(const std::string& task, const nlohmann::json& job) {
    if (task == "check") {
      nlohmann::json configs = nlohmann::json::array();
      for (const nlohmann::json& config : job["configs"])
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
  static nlohmann::json repetition(double step_ms) {
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
    std::filesystem::create_directories(folder_);
    options_.out = folder_ / "results.json";
    options_.command_line = "stratagem run";
  }
  ~MeasureTest() override { std::filesystem::remove_all(folder_); }

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
    result.launch = [this](const nlohmann::json& job, std::chrono::duration<double>) {
      return workers_(job);
    };
    result.predict = [](const Config&, const nlohmann::json& costs) {
      return costs[0].get<double>() * 10;
    };
    result.predict_from_two = [](const Config&, const nlohmann::json& first,
                                 const nlohmann::json& second) {
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

  std::filesystem::path partial() const { return partial_path(options_.out); }

  std::filesystem::path folder_;
  FakeWorkers workers_;
  MeasureOptions options_;
  Notes notes_;
};

}  // namespace stratagem::bench
