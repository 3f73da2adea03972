#include "bench/config/row_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/config/options.h"
#include "tests/bench/example_catalogue.h"

namespace stratagem::bench::row_name_test {
namespace {

std::string name_of(const Config& config) { return row_name(config, example_catalogue()); }

Config pipeline() {
  Config config;
  config.strategy = "pipeline";
  return config;
}

TEST(RowName, HoldsWorkAndHowItIsCut) {
  EXPECT_EQ(name_of(pipeline()),
            "pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b");
}

TEST(RowName, LeavesOutWhatTheRowHasNot) {
  Config config;
  config.strategy = "model_parallel";
  config.model = "mlp";
  config.image_size = 0;
  EXPECT_EQ(name_of(config), "model_parallel/mlp/devices:2/batch:48");
}

TEST(RowName, OtherOptionsStandInTheTablesOrderAndCoresLast) {
  Config config = pipeline();
  config.cores_per_device = 4;
  config.inputs = "device";
  config.learning_rate = 0.01;
  config.dtype = "bfloat16";
  config.kernels = "reference";
  config.cut = {"layer2", "layer4"};
  config.oversubscribe = true;
  config.device_ids = {1, 0};
  EXPECT_EQ(name_of(config),
            "pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b"
            "/cut:layer2+layer4/device_ids:1+0/oversubscribe/dtype:bfloat16/kernels:reference/"
            "learning_rate:0.01"
            "/inputs:device/cores:4");
}

TEST(RowName, HasTheTimesAndTheLimitOfASearchedSchedule) {
  Catalogue catalogue = example_catalogue();
  catalogue.schedules.push_back({.name = "test_searched", .is_searched = true});
  Config config = pipeline();
  config.schedule = "test_searched";
  const std::string usual = row_name(config, catalogue);
  config.pass_times = "2+2+1+0.5";
  config.live_micro_batches = 3;
  EXPECT_EQ(row_name(config, catalogue), usual + "/pass_times:2+2+1+0.5/live:3");
}

TEST(RowName, BooleansAreTheirNameAlone) {
  Config config = pipeline();
  config.device = "cuda";
  config.tf32 = true;
  EXPECT_EQ(name_of(config),
            "pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b"
            "/device:cuda/tf32");
}

TEST(RowName, HowItIsMeasuredIsNoPartOfIt) {
  Config config = pipeline();
  config.steps = 9;
  config.repetitions = 9;
  config.order = "block";
  config.timeout = 9;
  config.verify = false;
  EXPECT_EQ(name_of(config), name_of(pipeline()));
  config.protocol = "isolated";
  EXPECT_EQ(name_of(config), name_of(pipeline()) + "/protocol:isolated");
}

std::string workload_of(const Config& config) { return workload_name(config, example_catalogue()); }

TEST(WorkloadName, IsTheOneOfEarlierVersionsWhereNothingElseIsChosen) {
  EXPECT_EQ(workload_of(pipeline()),
            "resnet50/batch:48/dtype:float32/device:cpu/image_size:128/loss:mse/optimizer:sgd/"
            "protocol:steady/inputs:host/memory_format:channels_last");
}

TEST(WorkloadName, HasEveryOptionOfWorkThatIsNotTheDefault) {
  const std::string usual = workload_of(pipeline());
  Config config = pipeline();
  config.momentum = 0.9;
  config.seed = 2;
  EXPECT_EQ(workload_of(config), usual + "/momentum:0.9/seed:2");
  config = pipeline();
  config.split_size = 4;
  config.kernels = "reference";
  config.cores_per_device = 2;
  EXPECT_EQ(workload_of(config), usual) << "ways to the same work";
}

TEST(WorkloadName, EveryOptionIsWorkOrAWay) {
  std::vector<std::string> work;
  for (const Option& option : option_table()) {
    if (is_of_work(option)) work.push_back(option.name);
  }
  EXPECT_THAT(
      work, testing::UnorderedElementsAre(
                "model", "global_batch_size", "image_size", "sequence_length", "features",
                "outputs", "bias", "dropout", "targets", "data", "compression", "reduce_dtype",
                "device", "dtype", "mixed_precision", "loss_scale", "loss_scale_hysteresis", "tf32",
                "memory_format", "loss", "optimizer", "learning_rate", "momentum", "weight_decay",
                "clip_gradients", "seed", "protocol", "inputs"));
}

}  // namespace
}  // namespace stratagem::bench::row_name_test
