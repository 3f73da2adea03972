#include "bench/config/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "tests/bench/error_of.h"
#include "tests/bench/example_catalogue.h"

namespace stratagem::bench::grid_test {
namespace {

using testing::ElementsAre;
using Values = std::map<std::string, std::string>;

std::vector<Config> rows_of(const Values& values) {
  RunOptions options;
  options.values = values;
  return make_grid(select(options), example_catalogue());
}

std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const Config& row : rows_of(values)) {
    names.push_back(row_name(row, example_catalogue()));
  }
  return names;
}

std::string refusal(const Values& values) {
  return error_of([&] { rows_of(values); });
}

TEST(Grid, IsTheProductWithTheFirstOptionSlowest) {
  EXPECT_THAT(
      names_of({{"strategy", "pipeline"}, {"split_size", "8,4"}, {"schedule", "gpipe,1f1b"}}),
      ElementsAre("pipeline/resnet50/devices:2/batch:48/image:128/split:8/schedule:gpipe",
                  "pipeline/resnet50/devices:2/batch:48/image:128/split:8/schedule:1f1b",
                  "pipeline/resnet50/devices:2/batch:48/image:128/split:4/schedule:gpipe",
                  "pipeline/resnet50/devices:2/batch:48/image:128/split:4/schedule:1f1b"));
}

TEST(Grid, RowsThatBecomeEqualAreMeasuredOnce) {
  EXPECT_THAT(names_of({{"strategy", "model_parallel,pipeline"}, {"split_size", "4,8"}}),
              ElementsAre("model_parallel/resnet50/devices:2/batch:48/image:128",
                          "pipeline/resnet50/devices:2/batch:48/image:128/split:4/schedule:1f1b",
                          "pipeline/resnet50/devices:2/batch:48/image:128/split:8/schedule:1f1b"));
}

TEST(Grid, TheTutorialsStepsHaveNoBatchThatStaysOnTheDevice) {
  EXPECT_EQ(refusal({{"protocol", "steady,tutorial"}, {"inputs", "device"}}),
            "--inputs device: --protocol tutorial makes a new batch for each step; "
            "leave one of them out");
}

TEST(Grid, KernelsAreAnAxisOnCpus) {
  EXPECT_THAT(names_of({{"strategy", "single"}, {"devices", "1"}, {"kernels", "own,reference"}}),
              ElementsAre("single/resnet50/devices:1/batch:48/image:128",
                          "single/resnet50/devices:1/batch:48/image:128/kernels:reference"));
  EXPECT_EQ(refusal({{"strategy", "single"}, {"device", "cuda"}, {"kernels", "reference"}}),
            "--kernels: has no effect on the chosen rows; it applies to --device cpu");
  EXPECT_EQ(rows_of({{"strategy", "single"}, {"device", "cpu,cuda"}, {"kernels", "reference"}})
                .back()
                .kernels.name(),
            "own")
      << "on CUDA it would change nothing";
  EXPECT_THAT(refusal({{"kernels", "aten"}}), testing::HasSubstr("own, reference"));
}

TEST(Grid, OneArrangementOfDevicesHasOneName) {
  Catalogue catalogue = example_catalogue();
  catalogue.strategies.push_back({.name = "meshed", .options = {"mesh"}, .multi_device = true});
  RunOptions options;
  options.values = {{"strategy", "meshed"},
                    {"mesh", "data=2/pipeline=2,data=2/tensor=1/pipeline=2"}};
  const std::vector<Config> rows = make_grid(select(options), catalogue);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(row_name(rows.front(), catalogue), testing::HasSubstr("/mesh:data=2+pipeline=2"));
  options.values["mesh"] = "tensor=2/data=2";
  EXPECT_THAT(row_name(make_grid(select(options), catalogue).front(), catalogue),
              testing::HasSubstr("/mesh:tensor=2+data=2"));
}

TEST(Grid, OptionsOfBucketsStayInMixedPrecisionAndARowNamesItsReduction) {
  Catalogue catalogue = example_catalogue();
  catalogue.strategies.push_back(
      {.name = "replicas",
       .options = {"bucket_mb", "overlap", "compression", "mixed_precision", "reduce_dtype"},
       .multi_device = true,
       .usual_dimensions = {"data"}});
  const auto names = [&](Values values) {
    values.insert({{"strategy", "replicas"}, {"model", "mlp"}});
    RunOptions options;
    options.values = std::move(values);
    std::vector<std::string> found;
    for (const Config& row : make_grid(select(options), catalogue)) {
      found.push_back(row_name(row, catalogue));
    }
    return found;
  };
  EXPECT_THAT(names({{"mixed_precision", "none,bfloat16"}, {"compression", "none,fp16"}}),
              ElementsAre("replicas/mlp/devices:2/batch:48",
                          "replicas/mlp/devices:2/batch:48/mixed:bfloat16",
                          "replicas/mlp/devices:2/batch:48/compression:fp16",
                          "replicas/mlp/devices:2/batch:48/compression:fp16/mixed:bfloat16"));
  EXPECT_THAT(names({{"mixed_precision", "none,bfloat16"}, {"reduce_dtype", "float32,same"}}),
              ElementsAre("replicas/mlp/devices:2/batch:48",
                          "replicas/mlp/devices:2/batch:48/mixed:bfloat16",
                          "replicas/mlp/devices:2/batch:48/reduce_dtype:same/mixed:bfloat16"));
}

TEST(Grid, UnusedOptionsKeepTheirDefault) {
  const std::vector<Config> rows = rows_of(
      {{"strategy", "model_parallel,pipeline"}, {"split_size", "4"}, {"schedule", "gpipe"}});
  EXPECT_EQ(rows[0].split_size, Config{}.split_size);
  EXPECT_EQ(rows[0].schedule, Config{}.schedule);
  EXPECT_EQ(rows[1].split_size, 4);
}

TEST(Grid, SingleUsesOneDeviceAndIsFollowedByAllTheCores) {
  const std::vector<Config> rows =
      rows_of({{"strategy", "single,model_parallel"}, {"devices", "2"}, {"cores_per_device", "3"}});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].devices, 1);
  EXPECT_EQ(rows[0].cores_per_device, 3);
  EXPECT_EQ(rows[1].devices, 1);
  EXPECT_EQ(rows[1].cores_per_device, 6);
  EXPECT_EQ(rows[2].devices, 2);
  EXPECT_EQ(rows[2].cores_per_device, 3);
}

TEST(Grid, NoSecondSingleWithMoreCoresThanThereAre) {
  RunOptions options;
  options.values = {{"strategy", "single"}, {"devices", "2"}, {"cores_per_device", "3"}};
  const auto rows = [&](std::int64_t cores) {
    return make_grid(select(options), example_catalogue(), cores).size();
  };
  EXPECT_EQ(rows(6), 2U);
  EXPECT_EQ(rows(5), 1U);
  EXPECT_EQ(rows(no_baselines), 1U);
}

TEST(Grid, NoSecondSingleForOneCoreOrOnCuda) {
  EXPECT_EQ(rows_of({{"strategy", "single"}, {"devices", "1"}}).size(), 1U);
  EXPECT_EQ(rows_of({{"strategy", "single"}, {"device", "cuda"}}).size(), 1U);
}

TEST(Grid, DeviceIdsGiveTheNumberOfDevices) {
  const std::vector<Config> rows =
      rows_of({{"strategy", "single,pipeline"}, {"device", "cuda"}, {"device_ids", "3+0+1"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].device_ids, ElementsAre(3));
  EXPECT_EQ(rows[1].devices, 3);
  EXPECT_EQ(
      refusal({{"strategy", "pipeline"}, {"devices", "2"}, {"device_ids", "0+1+2"}}),
      "--device-ids: the number of ids is 3, and the number of devices 2; give equal numbers");
}

TEST(Grid, IdsInOrderAreTheDefault) {
  EXPECT_TRUE(rows_of({{"strategy", "pipeline"}, {"device_ids", "0+1"}})[0].device_ids.empty());
  EXPECT_THAT(rows_of({{"strategy", "pipeline"}, {"device_ids", "0+0"}})[0].device_ids,
              ElementsAre(0, 0));
}

TEST(Grid, ImageSizeIsTheModelsOwnUnlessGiven) {
  EXPECT_EQ(rows_of({{"strategy", "pipeline"}, {"model", "resnet18"}})[0].image_size, 64);
  EXPECT_EQ(rows_of({{"strategy", "pipeline"}, {"model", "mlp"}})[0].image_size, 0);
  EXPECT_EQ(rows_of({{"strategy", "pipeline"}, {"image_size", "96"}})[0].image_size, 96);
  EXPECT_EQ(refusal({{"strategy", "pipeline"}, {"image_size", "16"}}),
            "--image-size: 16 is too small for resnet50; expected 32 or more");
}

TEST(Grid, PerDeviceBatchIsTheSameWorkForEveryStrategy) {
  const std::vector<Config> rows =
      rows_of({{"strategy", "single,pipeline"}, {"devices", "3"}, {"per_device_batch_size", "16"}});
  for (const Config& row : rows) {
    EXPECT_EQ(row.global_batch_size, 48);
  }
  EXPECT_EQ(refusal({{"per_device_batch_size", "16"}, {"global_batch_size", "48"}}),
            "--global-batch-size and --per-device-batch-size exclude each other; give one of them");
  EXPECT_EQ(refusal({{"per_device_batch_size", "0"}}),
            "--per-device-batch-size: 0 is out of range; expected 1 to 1000000000");
}

TEST(Grid, RefusesASplitAboveTheBatch) {
  EXPECT_EQ(refusal({{"strategy", "pipeline"}, {"split_size", "12,64"}}),
            "--split-size: 64 is above the batch of 48; expected 1 to 48");
  EXPECT_EQ(refusal({{"strategy", "pipeline"}, {"global_batch_size", "8"}}),
            "--split-size: 12 is above the batch of 8; expected 1 to 8");
  // `single` has no micro-batches: its default split is no error.
  EXPECT_EQ(rows_of({{"strategy", "single"}, {"global_batch_size", "8"}}).size(), 2U);
}

TEST(Grid, RefusesWhatNoRowUses) {
  EXPECT_EQ(refusal({{"strategy", "single,model_parallel"}, {"split_size", "4"}}),
            "--split-size: has no effect on the chosen rows; it applies to pipeline");
  EXPECT_EQ(refusal({{"strategy", "single"}, {"cut", "layer3"}}),
            "--cut: has no effect on the chosen rows; it applies to model_parallel, pipeline");
  EXPECT_EQ(refusal({{"strategy", "single"}, {"tf32", "on"}}),
            "--tf32: has no effect on the chosen rows; it applies to --device cuda");
  EXPECT_EQ(refusal({{"model", "mlp"}, {"image_size", "64"}}),
            "--image-size: has no effect on the chosen rows; it applies to resnet50, resnet18");
  EXPECT_EQ(refusal({{"optimizer", "adam"}, {"momentum", "0.9"}}),
            "--momentum: has no effect on the chosen rows; it applies to --optimizer sgd");
  EXPECT_EQ(refusal({{"device", "cuda"}, {"cores_per_device", "2"}}),
            "--cores-per-device: has no effect on the chosen rows; it applies to --device cpu");
}

/// Rows of nn.DataParallel, by what sets their names apart.
std::vector<std::string> rungs_of(const Values& values) {
  Catalogue catalogue = example_catalogue();
  catalogue.strategies.push_back(
      {.name = "data_parallel",
       .options = strategies::option_names({strategies::data_parallel_options}),
       .multi_device = true});
  RunOptions options;
  options.values = values;
  options.values["strategy"] = "data_parallel";
  options.values["model"] = "mlp";
  std::vector<std::string> names;
  for (const Config& row : make_grid(select(options), catalogue)) {
    names.push_back(row_name(row, catalogue)
                        .substr(std::string("data_parallel/mlp/devices:2/batch:48").size()));
  }
  return names;
}

TEST(Grid, OptionsOfDataParallelAreUsedWhereAnotherMakesRoomForThem) {
  EXPECT_THAT(rungs_of({{"replicate", "step,kept"}, {"update", "first,everywhere"}}),
              ElementsAre("", "/replicate:kept", "/replicate:kept/update:everywhere"));
  EXPECT_THAT(rungs_of({{"reduce", "after,overlapped"}, {"bucket_mb", "4"}}),
              ElementsAre("", "/bucket:4/reduce:overlapped"));
  EXPECT_EQ(error_of([] {
              rungs_of({{"update", "everywhere"}});
            }),
            "--update: has no effect on the chosen rows; it applies to --replicate kept");
  EXPECT_EQ(
      error_of([] {
        rungs_of({{"bucket_mb", "4"}});
      }),
      "--bucket-mb: has no effect on the chosen rows; it applies to data_parallel with --reduce "
      "overlapped or --replicate kept");
}

/// The names of a grid's rows.
std::vector<std::string> names_in(const Catalogue& catalogue, const Values& values) {
  RunOptions options;
  options.values = values;
  std::vector<std::string> names;
  for (const Config& row : make_grid(select(options), catalogue)) {
    names.push_back(row_name(row, catalogue));
  }
  return names;
}

TEST(Grid, ASizeOrANumberCutsTheBatchOfStages) {
  Catalogue catalogue = example_catalogue();
  catalogue.strategies.push_back(
      {.name = "test_wide",
       .options = {"mesh", "split_size", "schedule", "accumulation_steps", "shard"},
       .multi_device = true,
       .usual_dimensions = {"data"}});
  const auto names = [&catalogue](Values values) {
    values.insert({{"strategy", "test_wide"}, {"model", "mlp"}, {"devices", "4"}});
    return names_in(catalogue, values);
  };
  const std::string row = "test_wide/mlp/devices:4/batch:48";
  const std::pair staged{"mesh", "data=2/pipeline=2"};
  EXPECT_THAT(names({{"accumulation_steps", "2"}}), ElementsAre(row + "/accumulation:2"));
  EXPECT_THAT(names({staged}), ElementsAre(row + "/split:12/schedule:1f1b/mesh:data=2+pipeline=2"));
  EXPECT_THAT(names({staged, {"accumulation_steps", "2"}}),
              ElementsAre(row + "/schedule:1f1b/accumulation:2/mesh:data=2+pipeline=2"));
  // Rows of both kinds take what is theirs.
  EXPECT_THAT(
      names({{"mesh", "auto,data=2/pipeline=2"}, {"split_size", "4"}, {"accumulation_steps", "2"}}),
      ElementsAre(row + "/accumulation:2", row + "/split:4/schedule:1f1b/mesh:data=2+pipeline=2"));
  EXPECT_EQ(error_of([&] {
              names({staged, {"split_size", "4"}, {"accumulation_steps", "2"}});
            }),
            "--accumulation-steps: --split-size already splits the batch; leave one of them out");
  // State is sharded over replicas.
  EXPECT_THAT(
      names({{"mesh", "auto,pipeline=4"}, {"shard", "optimizer"}}),
      ElementsAre(row + "/shard:optimizer", row + "/split:12/schedule:1f1b/mesh:pipeline=4"));
  EXPECT_EQ(error_of([&] {
              names({{"mesh", "pipeline=4"}, {"shard", "optimizer"}});
            }),
            "--shard: has no effect on the chosen rows; it applies to test_wide with replicas");
}

TEST(Grid, ARowWhoseOptionsNameTheUsualArrangementIsOneRow) {
  Catalogue catalogue = example_catalogue();
  catalogue.strategies.push_back({.name = "test_copies",
                                  .options = {"mesh", "ranks"},
                                  .multi_device = true,
                                  .usual_dimensions = {"data"}});
  const auto names = [&catalogue](const std::string& mesh, const std::string& ranks) {
    return names_in(catalogue, {{"strategy", "test_copies"},
                                {"model", "mlp"},
                                {"devices", "2"},
                                {"mesh", mesh},
                                {"ranks", ranks}});
  };
  const std::string row = "test_copies/mlp/devices:2/batch:48";
  for (const char* mesh : {"auto", "data=2", "data=2/tensor=1", "auto,data=2"}) {
    for (const char* ranks : {"0", "2", "0,2"}) {
      EXPECT_THAT(names(mesh, ranks), ElementsAre(row)) << mesh << " " << ranks;
    }
  }
  EXPECT_THAT(names("pipeline=2", "0,1,2"),
              ElementsAre(row + "/mesh:pipeline=2", row + "/ranks:2/mesh:pipeline=2"));
}

TEST(Grid, ABackendThatIsTheDefaultIsNotInTheName) {
  Catalogue catalogue = example_catalogue();
  catalogue.strategies.push_back({.name = "test_copies",
                                  .options = {"backend"},
                                  .multi_device = true,
                                  .usual_dimensions = {"data"}});
  const auto names = [&catalogue](Values values) {
    values.insert({{"strategy", "test_copies"}, {"model", "mlp"}, {"devices", "2"}});
    return names_in(catalogue, values);
  };
  const std::string row = "test_copies/mlp/devices:2/batch:48";
  EXPECT_THAT(names({{"backend", "gloo"}}), ElementsAre(row));
  EXPECT_THAT(names({{"backend", "auto,gloo"}}), ElementsAre(row));
  EXPECT_THAT(names({{"backend", "nccl,gloo"}}), ElementsAre(row + "/backend:nccl", row));
  EXPECT_THAT(names({{"device", "cuda"}, {"backend", "nccl,gloo"}}),
              ElementsAre(row + "/device:cuda", row + "/device:cuda/backend:gloo"));
}

TEST(Grid, RefusesACutBesideAPartition) {
  EXPECT_EQ(refusal({{"strategy", "pipeline"}, {"cut", "layer3"}, {"partition", "balanced"}}),
            "--cut and --partition exclude each other; give one of them");
}

TEST(Grid, RefusesEmptyAndUnknownValues) {
  EXPECT_EQ(refusal({{"split_size", "4,,8"}}),
            "--split-size: value 2 of \"4,,8\" is empty; join values with single commas");
  EXPECT_EQ(refusal({{"split_size", "4,"}}),
            "--split-size: value 2 of \"4,\" is empty; join values with single commas");
  EXPECT_THAT(refusal({{"strategy", "single,zero1"}}),
              testing::StartsWith("--strategy: unknown strategy \"zero1\"; choices: "));
}

TEST(Grid, WhatIsNoPartOfTheNameTakesOneValue) {
  EXPECT_EQ(refusal({{"steps", "2,3"}}),
            "--steps: 2 values; give one value, which applies to all rows");
}

TEST(Grid, RowsOfAGridHaveDifferentNames) {
  const std::vector<std::string> names = names_of({{"strategy", "single,model_parallel,pipeline"},
                                                   {"model", "resnet50,mlp"},
                                                   {"split_size", "4,8"},
                                                   {"cores_per_device", "1,2"},
                                                   {"optimizer", "sgd,adam"},
                                                   {"learning_rate", "0.1,0.10,0.01"}});
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.size(), 2U * (3 + 2 + 4) * 2 * 2);
}

TEST(Grid, RefusesAnAbsurdProduct) {
  std::string many = "1";
  for (int value = 2; value <= 200; ++value) {
    many += "," + std::to_string(value);
  }
  EXPECT_EQ(refusal({{"seed", many}, {"global_batch_size", many}}),
            "the grid has more than 10000 rows; give fewer values");
}

}  // namespace
}  // namespace stratagem::bench::grid_test
