#include "strategies/stages/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/strategies/training.h"

namespace stratagem::stages::partition_test {
namespace {

using strategies::small_workload;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::milliseconds ample{60'000};

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

models::Workload workload_of(const std::string& model) {
  return models::Workload(strategies::small_workload(model, 4));
}

TEST(Partition, BoundariesOfNamedLayers) {
  const models::Model model = workload_of("mlp").make_model();  // fc1 relu1 fc2 relu2 ... fc8
  EXPECT_THAT(boundaries_of(model.layers, {"fc3", "relu6"}), ElementsAre(4, 11));
  EXPECT_THAT(boundaries_of(model.layers, {}), IsEmpty());
  const models::Model resnet = workload_of("resnet18").make_model();
  EXPECT_EQ(resnet.layers[boundaries_of(resnet.layers, {"layer3"}).front()]->name(), "layer3.0");
}

TEST(Partition, CutsOutOfOrderAreRefused) {
  const models::Model model = workload_of("mlp").make_model();
  for (const auto& cut :
       std::vector<std::vector<std::string>>{{"fc5", "fc3"}, {"fc5", "fc5"}, {"fc1"}}) {
    EXPECT_THAT(refusal([&] { boundaries_of(model.layers, cut); }),
                HasSubstr("--cut: \"" + cut.back() + "\" leaves a stage without layers"));
  }
  EXPECT_THAT(refusal([&] { boundaries_of(model.layers, {"fc9"}); }),
              HasSubstr("--cut: no layer \"fc9\""));
}

TEST(Partition, RulesOfChoice) {
  const models::Workload resnet = workload_of("resnet18");
  EXPECT_THAT(choose_cut(resnet, 1, "auto"), IsEmpty());
  EXPECT_THAT(choose_cut(resnet, 2, "auto"), ElementsAre("layer3"));
  EXPECT_THAT(choose_cut(resnet, 2, "tutorial"), ElementsAre("layer3"));
  EXPECT_EQ(choose_cut(resnet, 4, "auto"), choose_cut(resnet, 4, "flops"));
  EXPECT_EQ(choose_cut(resnet, 4, "flops").size(), 3U);
}

TEST(Partition, EqualFlopsOfLinearLayers) {
  // At full width the layers fc2 .. fc7 cost alike and fc1 two thirds of them (nobody asks for the
  // gradient of the data), fc8 nearly as much: four and four, cut before what follows fc4.
  auto options = strategies::small_workload("mlp", 4);
  options.width = 1;
  options.classes = 1024;
  EXPECT_THAT(choose_cut(models::Workload(options), 2, "flops"), ElementsAre("relu4"));
}

TEST(Partition, WhatCannotBeCutIsRefused) {
  const models::Workload resnet = workload_of("resnet18");
  EXPECT_THAT(refusal([&] { choose_cut(resnet, 3, "tutorial"); }),
              HasSubstr("--partition tutorial: it cuts into two stages, not 3"));
  EXPECT_THAT(refusal([&] { choose_cut(workload_of("toy"), 4, "flops"); }),
              HasSubstr("cannot cut 3 layers into 4 stages"));
}

TEST(Partition, BalancedByMeasuredTime) {
  const models::Workload mlp = workload_of("mlp");
  const auto group = strategies::unpinned_devices(1);
  for (int stages = 1; stages <= 4; ++stages) {
    const auto cut = balanced_cut(mlp, stages, 2, *group.devices[0], ample);
    ASSERT_EQ(cut.size(), static_cast<std::size_t>(stages - 1));
    const models::Model model = mlp.make_model();
    EXPECT_EQ(boundaries_of(model.layers, cut).size(), cut.size()) << "names in their order";
  }
}

}  // namespace
}  // namespace stratagem::stages::partition_test
