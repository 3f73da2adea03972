#include "bench/config/row_name.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stratagem::bench::row_name_test
