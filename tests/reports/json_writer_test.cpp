#include "reports/json_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "reports/file_reader.h"
#include "tests/reports/approved_file.h"
#include "tests/reports/example_results.h"
#include "tests/temporary_folder.h"

namespace stratagem::reports::json_writer_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ResultsFileTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "results.json";
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
  EXPECT_EQ(context.at("caches"),
            json::parse(R"([{"type": "Data", "level": 1, "size": 49152, "num_sharing": 2}])"));
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
  results.rows[0].repetitions.resize(3);
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

TEST(ResultsJson, TheFirstRepetitionOfEachRowHasItsSummary) {
  const json benchmarks = json(results_json(two_rows())).at("benchmarks");
  const json& summary = benchmarks[0].at("stratagem").at("summary");
  EXPECT_EQ(summary.at("workload"), "resnet50/batch:48/image_size:128");
  EXPECT_TRUE(summary.at("baseline").is_null());
  EXPECT_TRUE(summary.at("ratios").empty());
  EXPECT_EQ(summary.at("samples_ms"), json({1585.0, 1595.0, 1586.0, 1594.0, 1587.0, 1593.0}));
  EXPECT_EQ(summary.at("interval_ms"),
            json({{"low", 1585.0}, {"high", 1595.0}, {"coverage", 0.96875}}));
  EXPECT_EQ(summary.at("breakdown_ms").size(), 8U);
  EXPECT_EQ(summary.at("bubble").at("ideal"), 0.2);
  EXPECT_EQ(summary.at("verification"), "passed");
  EXPECT_TRUE(summary.at("error").is_null());
  EXPECT_FALSE(benchmarks[1].at("stratagem").contains("summary"));
  const json& failed = benchmarks[10].at("stratagem").at("summary");
  EXPECT_EQ(failed.size(), 4U) << failed;
  EXPECT_EQ(failed.at("verification"), "passed");
  EXPECT_THAT(failed.at("error").get<std::string>(), HasSubstr("rank 0: device 1 overran"));
}

TEST(ResultsJson, ASummaryWithoutDevicesHasNullsAndNoParts) {
  ResultFile results = two_rows();
  for (Repetition& repetition : results.rows[0].repetitions) repetition.devices.clear();
  const json benchmarks = json(results_json(results)).at("benchmarks");
  const json& summary = benchmarks[0].at("stratagem").at("summary");
  EXPECT_EQ(summary.at("bubble"), json({{"measured", nullptr}, {"ideal", nullptr}}));
  EXPECT_EQ(summary.at("breakdown_ms"), json::object());
  EXPECT_TRUE(summary.at("communication_share").is_null());
  EXPECT_TRUE(summary.at("peak_memory_bytes").is_null());
}

TEST(ResultsJson, AFailedRepetitionIsAnErrorAndNoPartOfAggregates) {
  ResultFile results = two_rows();
  const json benchmarks = json(results_json(results)).at("benchmarks");
  ASSERT_EQ(benchmarks.size(), 6U + 4U + 2U);  // one good repetition is no aggregate
  const json& failed = benchmarks.back();
  EXPECT_EQ(failed.at("error_occurred"), true);
  EXPECT_EQ(failed.at("error_message"), "device 1 overran the limit of 120 s");
  EXPECT_EQ(failed.at("real_time"), 0);
  EXPECT_EQ(failed.at("time_unit"), "ms");
  EXPECT_EQ(failed.at("stratagem").at("error").at("last_action"), "F3 s1 on device 1");
}

TEST(ResultsJson, AggregatesAreOfTheLaunchesThatTheTableCounts) {
  ResultFile results = two_rows();
  Row& row = results.rows[0];
  const auto mean_of = [&] {
    const json benchmarks = json(results_json(results)).at("benchmarks");
    return benchmarks[row.repetitions.size()].at("real_time").get<double>();
  };
  const double calm = mean_of();
  row.repetitions.push_back(example_repetition(6, {9000}));
  EXPECT_GT(mean_of(), calm);
  row.repetitions.back().marks = {"disturbed"};
  EXPECT_EQ(mean_of(), calm);
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
  write_results(path_, results);
  EXPECT_TRUE(is_approved("results.json", read_file(path_, "results")));
}

TEST_F(ResultsFileTest, BytesThatAreNotTextAreReplaced) {
  ResultFile results = two_rows();
  results.rows[1].repetitions[1].error->message = "torn \xff message";
  write_results(path_, results);
  const json benchmarks = json::parse(read_file(path_, "results")).at("benchmarks");
  EXPECT_EQ(benchmarks.back().at("error_message"), "torn \xEF\xBF\xBD message");
}

}  // namespace
}  // namespace stratagem::reports::json_writer_test
