#include "models/distributed_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace stratagem::models::distributed_sampler_test {
namespace {

TEST(DistributedSampler, GivesPyTorchsIndices) {
  std::ifstream file(STRATAGEM_TEST_DATA "/models/reference_sampler.json");
  const auto cases = nlohmann::json::parse(file);
  EXPECT_EQ(cases.size(), 192U);
  for (const auto& of : cases) {
    SCOPED_TRACE(testing::Message()
                 << of["samples"] << " samples, " << of["replicas"] << " replicas, shuffle "
                 << of["shuffle"] << ", drop_last " << of["drop_last"] << ", seed " << of["seed"]
                 << ", epoch " << of["epoch"]);
    for (std::size_t rank = 0; rank < of["ranks"].size(); ++rank) {
      DistributedSampler sampler({.samples = of["samples"],
                                  .replicas = of["replicas"],
                                  .rank = static_cast<std::int64_t>(rank),
                                  .shuffle = of["shuffle"],
                                  .seed = of["seed"],
                                  .drop_last = of["drop_last"]});
      sampler.set_epoch(of["epoch"].get<std::uint64_t>());
      auto indices = sampler.indices();
      const auto& expected = of["ranks"][rank];
      ASSERT_EQ(indices.size(), expected["size"].get<std::size_t>());
      EXPECT_EQ(static_cast<std::size_t>(sampler.size()), indices.size());
      indices.resize(expected["first"].size());
      EXPECT_EQ(indices, expected["first"].get<std::vector<std::int64_t>>());
    }
  }
}

TEST(DistributedSampler, TheReplicasShareTheDatasetOut) {
  std::vector<std::int64_t> all;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto own = DistributedSampler({.samples = 12, .replicas = 3, .rank = rank}).indices();
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::sort(all);
  for (std::int64_t index = 0; index < 12; ++index) {
    EXPECT_EQ(all[static_cast<std::size_t>(index)], index);
  }
}

// PyTorch's tutorial "Multi GPU training with DDP" trains 2048 samples in batches of 32: 64 steps
// an epoch on one GPU, 16 on each of four.
TEST(DistributedSampler, FourReplicasTakeAQuarterOfTheStepsOfTheTutorialsOne) {
  constexpr std::int64_t batch = 32;
  const auto steps = [](std::int64_t replicas) {
    return DistributedSampler({.samples = 2048, .replicas = replicas}).size() / batch;
  };
  EXPECT_EQ(steps(1), 64);
  EXPECT_EQ(steps(4), 16);
}

TEST(DistributedSampler, RefusesWhatCannotBe) {
  EXPECT_THROW(DistributedSampler({.samples = 4, .replicas = 2, .rank = 2}), std::invalid_argument);
  EXPECT_THROW(DistributedSampler({.samples = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::models::distributed_sampler_test
