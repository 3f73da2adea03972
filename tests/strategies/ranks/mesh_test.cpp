#include "strategies/ranks/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace stratagem::ranks::mesh_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Mesh, AnEmptyMeshIsOneDevice) {
  const Mesh mesh;
  EXPECT_EQ(mesh.size(), 1);
  EXPECT_EQ(mesh.to_string(), "data=1/pipeline=1/tensor=1");
  EXPECT_THAT(mesh.group(0, {"tensor"}), ElementsAre(0));
}

TEST(Mesh, TheLastDimensionIsTheFastest) {
  const Mesh mesh = parse_mesh("data=2/pipeline=3/tensor=2");
  EXPECT_EQ(mesh.to_string(), "data=2/pipeline=3/tensor=2");
  EXPECT_EQ(mesh.size(), 12);
  EXPECT_EQ(mesh.coordinate(9, "data"), 1);
  EXPECT_EQ(mesh.coordinate(9, "pipeline"), 1);
  EXPECT_EQ(mesh.coordinate(9, "tensor"), 1);
}

TEST(Mesh, AGroupDiffersInOneDimension) {
  const Mesh mesh = parse_mesh("data=2/pipeline=3/tensor=2");
  EXPECT_THAT(mesh.group(9, {"data"}), ElementsAre(3, 9));
  EXPECT_THAT(mesh.group(9, {"pipeline"}), ElementsAre(7, 9, 11));
  EXPECT_THAT(mesh.group(9, {"tensor"}), ElementsAre(8, 9));
}

TEST(Mesh, EveryGroupOfADimensionIsADisjointPart) {
  const Mesh mesh = parse_mesh("data=2/pipeline=2/tensor=2");
  for (const auto& dimension : mesh.dimensions()) {
    std::vector<int> seen(8, 0);
    for (int position = 0; position < mesh.size(); ++position) {
      const auto group = mesh.group(position, {dimension.name});
      EXPECT_THAT(group, ::testing::Contains(position));
      if (group.front() != position) continue;
      for (const int member : group) ++seen[static_cast<std::size_t>(member)];
    }
    EXPECT_THAT(seen, ::testing::Each(1)) << dimension.name;
  }
}

TEST(Mesh, CountsPositionsInTheOrderThatIsWritten) {
  const Mesh mesh = parse_mesh("tensor=2/data=3");
  EXPECT_EQ(mesh.shortest(), "tensor=2/data=3");
  EXPECT_EQ(mesh.to_string(), "tensor=2/pipeline=1/data=3");
  EXPECT_EQ(mesh.coordinate(4, "tensor"), 1);
  EXPECT_EQ(mesh.coordinate(4, "data"), 1);
  EXPECT_THAT(mesh.group(4, {"data"}), ElementsAre(3, 4, 5));
  EXPECT_THAT(mesh.group(4, {"tensor"}), ElementsAre(1, 4));
  EXPECT_THAT(mesh.group(4, {"tensor", "data"}), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Mesh, GroupsOfAnyDimensionsPartitionThePositions) {
  std::mt19937 random(7);
  const auto upto = [&](int most) { return std::uniform_int_distribution(1, most)(random); };
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<MeshDimension> dimensions = {
        {"data", upto(3)}, {"pipeline", upto(3)}, {"context", upto(3)}, {"tensor", upto(3)}};
    std::ranges::shuffle(dimensions, random);
    const Mesh mesh(dimensions);
    const std::string& first = dimensions[0].name;
    const std::string& second = dimensions[1].name;
    std::vector<int> seen(static_cast<std::size_t>(mesh.size()), 0);
    for (int position = 0; position < mesh.size(); ++position) {
      const std::vector<int> group = mesh.group(position, {first, second});
      EXPECT_EQ(std::ssize(group), mesh.size(first) * mesh.size(second));
      if (group.front() != position) continue;
      for (const int member : group) {
        ++seen[static_cast<std::size_t>(member)];
        EXPECT_EQ(mesh.group(member, {second, first}), group);
      }
    }
    EXPECT_THAT(seen, testing::Each(1)) << mesh.to_string();
  }
}

TEST(Mesh, RefusesWhatIsNoMesh) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_mesh(text);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("data"), HasSubstr("--mesh data: \"data\" is not NAME=SIZE"));
  EXPECT_THAT(refusal(""), HasSubstr("is not NAME=SIZE"));
  EXPECT_THAT(refusal("data=2/"), HasSubstr("is not NAME=SIZE"));
  EXPECT_THAT(refusal("data=0"), HasSubstr("expected a size of 1 or more"));
  EXPECT_THAT(refusal("data=2x"), HasSubstr("expected a size of 1 or more"));
  EXPECT_THAT(refusal("rows=2"),
              HasSubstr("unknown dimension \"rows\"; use data, pipeline, context or tensor"));
  EXPECT_THAT(refusal("data=2/data=2"), HasSubstr("data appears twice"));
}

TEST(Mesh, HasOneShortestText) {
  EXPECT_EQ(parse_mesh("tensor=1/data=2/pipeline=3").shortest(), "data=2/pipeline=3");
  EXPECT_EQ(parse_mesh("tensor=2").shortest(), "tensor=2");
  EXPECT_EQ(parse_mesh("tensor=1").shortest(), "data=1");
}

TEST(Mesh, RefusesAPositionOutside) {
  EXPECT_THROW(parse_mesh("data=2").coordinate(2, "data"), std::invalid_argument);
  EXPECT_THROW(parse_mesh("data=2").group(-1, {"data"}), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::ranks::mesh_test
