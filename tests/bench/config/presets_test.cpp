#include "bench/config/presets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/config/grid.h"
#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "tests/bench/error_of.h"
#include "tests/bench/example_catalogue.h"

namespace stratagem::bench::presets_test {
namespace {

std::vector<Config> rows_of(const RunOptions& options) {
  return make_grid(select(options), example_catalogue());
}

std::vector<std::int64_t> splits_of(const std::vector<Config>& rows) {
  std::vector<std::int64_t> splits;
  for (const Config& row : rows) {
    if (row.strategy == "pipeline") {
      splits.push_back(row.split_size);
    }
  }
  return splits;
}

TEST(Presets, CpuIsTheMainJob) {
  RunOptions options;
  options.preset = "cpu";
  const std::vector<Config> rows = rows_of(options);
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_EQ(row_name(rows[0], example_catalogue()), "single/resnet50/devices:1/batch:24/image:128");
  EXPECT_EQ(row_name(rows[1], example_catalogue()),
            "single/resnet50/devices:1/batch:24/image:128/cores:2");
  EXPECT_EQ(rows[2].strategy, "model_parallel");
  EXPECT_EQ(splits_of(rows), (std::vector<std::int64_t>{2, 4, 6, 12}));
  for (const Config& row : rows) {
    EXPECT_EQ(row.steps, 2);
    EXPECT_EQ(row.repetitions, 6) << "what tells seven rows apart";
    EXPECT_EQ(row.schedule, "1f1b");
  }
}

TEST(Presets, TutorialKeepsTheDeviceAsAsked) {
  RunOptions options;
  options.preset = "tutorial";
  options.values["device"] = "cuda";
  const std::vector<Config> rows = rows_of(options);
  ASSERT_EQ(rows.size(), 11U);  // single, model_parallel and nine splits: no cores on a GPU
  EXPECT_EQ(splits_of(rows), (std::vector<std::int64_t>{1, 3, 5, 8, 10, 12, 20, 40, 60}));
  for (const Config& row : rows) {
    EXPECT_EQ(row.device.name(), "cuda");
    EXPECT_EQ(row.global_batch_size, 120);
    EXPECT_EQ(row.protocol.name(), "tutorial");
    EXPECT_EQ(row.steps, 3);
    EXPECT_EQ(row.repetitions, 10);
    EXPECT_EQ(row.loss.name(), "mse");
  }
  EXPECT_EQ(rows.back().schedule, "gpipe");
}

TEST(Presets, TheProtocolAloneImpliesItsSteps) {
  RunOptions options;
  options.values = {{"strategy", "pipeline"}, {"protocol", "tutorial"}, {"repetitions", "2"}};
  const std::vector<Config> rows = rows_of(options);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].schedule, "gpipe");
  EXPECT_EQ(rows[0].steps, 3);
  EXPECT_EQ(rows[0].repetitions, 2);
  EXPECT_EQ(rows[0].split_size, 12);
}

TEST(Presets, FillOnlyWhatIsLeftOpen) {
  RunOptions options;
  options.preset = "cpu";
  options.values = {{"strategy", "pipeline"}, {"split_size", "3,5"}};
  const std::vector<Config> rows = rows_of(options);
  EXPECT_EQ(splits_of(rows), (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(rows[0].repetitions, 4);
}

TEST(Presets, SplitsThatDoNotFitTheUsersBatchFallOut) {
  RunOptions options;
  options.preset = "cpu";
  options.values["global_batch_size"] = "6";
  EXPECT_EQ(splits_of(rows_of(options)), (std::vector<std::int64_t>{2, 4, 6}));
}

TEST(Presets, TheirOptionsThatNoRowUsesAreNotRefused) {
  RunOptions options;
  options.preset = "cpu";
  options.values["strategy"] = "single";
  EXPECT_EQ(rows_of(options).size(), 2U);
}

TEST(Presets, EveryValueIsAnOptionOfTheTable) {
  for (const Preset& preset : presets()) {
    RunOptions options;
    options.preset = preset.name;
    EXPECT_FALSE(rows_of(options).empty()) << preset.name;
  }
}

TEST(Presets, UnknownNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(error_of([] { find_preset("tutorail"); }),
            "--preset: unknown preset \"tutorail\": did you mean \"tutorial\"? choices: cpu, "
            "tutorial");
}

}  // namespace
}  // namespace stratagem::bench::presets_test
