#include "strategies/ranks/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

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

TEST(Mesh, AGroupIsCutIntoNeighboursAndTheirCounterparts) {
  const std::vector<int> group = {1, 3, 5, 7, 9, 11};
  EXPECT_THAT(neighbours(group, 5, 2), ElementsAre(1, 3, 5));
  EXPECT_THAT(counterparts(group, 5, 2), ElementsAre(5, 11));
  EXPECT_THAT(neighbours(group, 7, 3), ElementsAre(5, 7));
  EXPECT_THAT(counterparts(group, 7, 3), ElementsAre(3, 7, 11));
  EXPECT_EQ(neighbours(group, 9, 1), group);
  EXPECT_THAT(counterparts(group, 9, 1), ElementsAre(9));
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
  EXPECT_THAT(refusal("tensor=2/pipeline=1/data=3"), HasSubstr("; write data=3/tensor=2"));
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
