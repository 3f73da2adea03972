#include "reports/json_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "reports/file_reader.h"
#include "reports/results_reader.h"
#include "reports/row_summary.h"
#include "tests/bench/error_of.h"
#include "tests/reports/example_results.h"

namespace stratagem::reports {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ResultsFileTest : public testing::Test {
 protected:
  ResultsFileTest() {
    path_ = testing::TempDir() + "results_file_test_" + std::to_string(getpid()) + ".json";
  }
  ~ResultsFileTest() override { std::filesystem::remove(path_); }

  std::string refusal(const std::string& text) const {
    std::ofstream(path_) << text;
    std::string message = error_of([&] { read_results(path_); });
    const std::size_t start = message.find(path_);
    return start == std::string::npos ? message : message.replace(start, path_.size(), "FILE");
  }

  std::string path_;
};

ResultFile two_rows() {
  ResultFile results = example_results();
  results.rows = {results.rows[3], results.rows[5]};
  return results;
}

TEST(ResultsJson, ContextIsGoogleBenchmarksWithOursBeside) {
  const json context = json(results_json(example_results())).at("context");
  EXPECT_EQ(context.at("num_cpus"), 2);
  EXPECT_EQ(context.at("mhz_per_cpu"), 2596);
  EXPECT_EQ(context.at("caches"), json::array());
  EXPECT_EQ(context.at("load_avg"), json({0.5, 0.25, 0.125}));
  EXPECT_EQ(context.at("library_build_type"), "release");
  EXPECT_EQ(context.at("cpu_scaling_enabled"), false);
  const json& own = context.at("stratagem");
  EXPECT_EQ(own.at("schema"), "stratagem/1");
  EXPECT_EQ(own.at("fingerprint").at("hardware").at("cores"), 2);
  EXPECT_EQ(own.at("fingerprint").at("software").at("torch"), "2.11.0");
  EXPECT_EQ(own.at("calibration").at("gemm_gflops"), 231.5);
  EXPECT_EQ(own.at("metrics").at("step_ms"),
            json({{"unit", "ms"}, {"better", "lower"}, {"deterministic", false}}));
}

TEST(ResultsJson, RepetitionsAndAggregatesHaveGoogleBenchmarksKeys) {
  ResultFile results = two_rows();
  results.rows.resize(1);
  results.rows[0].repetitions[0].step_ms = {1000, 1400};
  results.rows[0].repetitions[1].step_ms = {1600};
  results.rows[0].repetitions[2].step_ms = {1700};
  const json benchmarks = json(results_json(results)).at("benchmarks");
  ASSERT_EQ(benchmarks.size(), 7U);
  const json& first = benchmarks[0];
  const std::string name = results.rows[0].name;
  EXPECT_EQ(first.at("name"), name);
  EXPECT_EQ(first.at("run_name"), name);
  EXPECT_EQ(first.at("run_type"), "iteration");
  EXPECT_EQ(first.at("repetitions"), 3);
  EXPECT_EQ(first.at("repetition_index"), 0);
  EXPECT_EQ(first.at("threads"), 1);
  EXPECT_EQ(first.at("iterations"), 2);
  EXPECT_DOUBLE_EQ(first.at("real_time"), 1200);
  EXPECT_DOUBLE_EQ(first.at("cpu_time"), 3000);
  EXPECT_EQ(first.at("time_unit"), "ms");
  EXPECT_DOUBLE_EQ(first.at("items_per_second"), 40);
  EXPECT_EQ(first.at("stratagem").at("strategy"), "pipeline");
  EXPECT_EQ(first.at("stratagem").at("mesh"), "pipeline=2");
  EXPECT_TRUE(first.at("stratagem").at("config").at("split_size").is_null());

  EXPECT_EQ(benchmarks[3].at("name"), name + "_mean");
  EXPECT_EQ(benchmarks[3].at("run_type"), "aggregate");
  EXPECT_EQ(benchmarks[3].at("aggregate_name"), "mean");
  EXPECT_EQ(benchmarks[3].at("aggregate_unit"), "time");
  EXPECT_DOUBLE_EQ(benchmarks[3].at("real_time"), 1500);
  EXPECT_FALSE(benchmarks[3].contains("stratagem"));
  EXPECT_DOUBLE_EQ(benchmarks[4].at("real_time"), 1600);
  EXPECT_NEAR(benchmarks[5].at("real_time"), 264.575131, 1e-6);
  EXPECT_EQ(benchmarks[6].at("name"), name + "_cv");
  EXPECT_EQ(benchmarks[6].at("aggregate_unit"), "percentage");
  EXPECT_NEAR(benchmarks[6].at("real_time"), 0.17638342, 1e-8);
}

TEST(ResultsJson, StepsBeyondTheFencesOfAllSamplesAreMarkedWhereTheyStand) {
  ResultFile results = two_rows();
  Row& row = results.rows[0];
  row.repetitions[0].step_ms = {1000, 1010, 990};
  row.repetitions[1].step_ms = {1005, 2000, 995};
  row.repetitions[2].step_ms = {1001, 999};
  const auto marked = [&](std::size_t launch) {
    return json(results_json(results))
        .at("benchmarks")[launch]
        .at("stratagem")
        .at("outlying_steps");
  };
  EXPECT_EQ(marked(0), json::array());
  EXPECT_EQ(marked(1), json({1}));
  EXPECT_EQ(marked(2), json::array());
  EXPECT_EQ(summarise(row).outliers, 1U);
  EXPECT_EQ(summarise(row).samples_ms.size(), 8U) << "none is dropped";

  // Whole calls of 3000, 4000 and 2000 ms: too few and too wide for one of them to stand out.
  row.config.emplace_back("protocol", std::string("tutorial"));
  EXPECT_EQ(marked(1), json::array());
}

TEST(ResultsJson, ACallThatStandsOutMarksAllItsSteps) {
  ResultFile results = two_rows();
  Row& row = results.rows[0];
  row.config.emplace_back("protocol", std::string("tutorial"));
  row.repetitions.resize(1);
  row.repetitions[0].step_ms = {100, 101};
  for (int launch = 1; launch < 6; ++launch) {
    row.repetitions.push_back(row.repetitions[0]);
    row.repetitions.back().index = launch;
  }
  row.repetitions[4].step_ms = {100, 300};
  const json benchmarks = json(results_json(results)).at("benchmarks");
  EXPECT_EQ(benchmarks[3].at("stratagem").at("outlying_steps"), json::array());
  EXPECT_EQ(benchmarks[4].at("stratagem").at("outlying_steps"), json({0, 1}));
}

TEST(ResultsJson, AFailedRepetitionIsAnErrorAndNoPartOfAggregates) {
  ResultFile results = two_rows();
  const json benchmarks = json(results_json(results)).at("benchmarks");
  ASSERT_EQ(benchmarks.size(), 3U + 4U + 2U);  // one good repetition is no aggregate
  const json& failed = benchmarks.back();
  EXPECT_EQ(failed.at("error_occurred"), true);
  EXPECT_EQ(failed.at("error_message"), "device 1 overran the limit of 120 s");
  EXPECT_EQ(failed.at("real_time"), 0);
  EXPECT_EQ(failed.at("time_unit"), "ms");
  EXPECT_EQ(failed.at("stratagem").at("error").at("last_action"), "F3 s1 on device 1");
}

TEST(ResultsJson, RowsOfOneStrategyAreAFamily) {
  const json benchmarks = json(results_json(example_results())).at("benchmarks");
  std::map<std::string, std::pair<int, int>> positions;
  for (const json& entry : benchmarks) {
    positions[entry.at("run_name")] = {entry.at("family_index"),
                                       entry.at("per_family_instance_index")};
  }
  const std::vector<Row> rows = example_rows();
  EXPECT_EQ(positions.at(rows[0].name), std::pair(0, 0));
  EXPECT_EQ(positions.at(rows[1].name), std::pair(0, 1));
  EXPECT_EQ(positions.at(rows[2].name), std::pair(1, 0));
  EXPECT_EQ(positions.at(rows[5].name), std::pair(2, 2));
}

TEST(ResultsJson, RefusesWhatJsonCannotHold) {
  ResultFile results = two_rows();
  results.rows[0].repetitions[0].cpu_ms = std::numeric_limits<double>::infinity();
  EXPECT_THROW(results_json(results), std::logic_error);
  results = two_rows();
  results.context.calibration = {{"gemm_gflops", std::numeric_limits<double>::quiet_NaN()}};
  try {
    results_json(results);
    FAIL() << "NaN was written";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("context.stratagem.calibration.gemm_gflops"));
  }
  results = two_rows();
  results.rows[0].repetitions[0].step_ms.clear();
  EXPECT_THROW(results_json(results), std::logic_error);
}

// The approved file is what the Python tests read as well.
TEST_F(ResultsFileTest, MatchesTheApprovedOutput) {
  ResultFile results = example_results();
  results.rows = {results.rows[0], results.rows[3], results.rows[5]};
  const std::string approved = std::string(STRATAGEM_TEST_DATA) + "/approved/results.json";
  const std::string received = testing::TempDir() + "results.received.json";
  write_results(received, results);
  EXPECT_TRUE(read_file(received, "results") == read_file(approved, "the approved results"))
      << "see diff " << received << " " << approved << "; copy it over when it is right";
}

TEST_F(ResultsFileTest, ComesBackAsItWas) {
  const ResultFile results = example_results();
  write_results(path_, results);
  const ResultFile read = read_results(path_);
  ASSERT_EQ(read.rows.size(), results.rows.size());
  EXPECT_EQ(read.rows[0].config, results.rows[0].config);
  EXPECT_EQ(read.rows[0].samples_per_step, 48);
  EXPECT_EQ(read.rows[5].repetitions[1].index, 1);
  EXPECT_EQ(read.context.hardware, results.context.hardware);
  nlohmann::ordered_json expected = results_json(results);
  EXPECT_EQ(results_json(read), expected);
}

TEST_F(ResultsFileTest, BytesThatAreNotTextAreReplaced) {
  ResultFile results = two_rows();
  results.rows[1].repetitions[1].error->message = "torn \xff message";
  write_results(path_, results);
  EXPECT_EQ(read_results(path_).rows[1].repetitions[1].error->message, "torn \xEF\xBF\xBD message");
}

TEST_F(ResultsFileTest, OtherFilesAreRefusedInOneLine) {
  EXPECT_EQ(refusal("{\"context\": {"), "FILE: not valid JSON, perhaps cut short");
  EXPECT_EQ(refusal("{}"), "FILE: `context` is missing; expected a results file");
  EXPECT_EQ(refusal("[]"), "FILE: `context` is missing; expected a results file");
  EXPECT_EQ(refusal(R"({"context": {}})"),
            "FILE: context: `stratagem` is missing; expected a results file");
  EXPECT_EQ(refusal(R"({"context": {"stratagem": {"schema": "stratagem/9"}}})"),
            "FILE: context.stratagem.schema: expected \"stratagem/1\", found \"stratagem/9\"");
  const std::string head =
      R"({"context": {"stratagem": {"schema": "stratagem/1"}}, "benchmarks": )";
  EXPECT_EQ(refusal(head + "3}"), "FILE: benchmarks: expected a list, found a whole number");
  EXPECT_EQ(refusal(head + "[{}]}"),
            "FILE: benchmarks[0].run_name: missing; expected the row's name");
  EXPECT_EQ(refusal(head + R"([{"run_name": "a", "stratagem": {"step_ms": 3}}]})"),
            "FILE: benchmarks[0].stratagem.step_ms: expected a list, found a whole number");
  EXPECT_THROW(read_results("/nowhere/results.json"), std::system_error);
}

}  // namespace
}  // namespace stratagem::reports
