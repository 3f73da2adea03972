#include "bench/config/core_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stratagem::bench::core_demand_test {
namespace {

using testing::ElementsAre;

TEST(CoresOfADevice, AreThoseOfItsId) {
  const std::vector<int> available = {4, 6, 8, 9};
  Config row;
  row.device_ids = {3, 0};
  EXPECT_THAT(cores_of_device(row, available, 0, 0), ElementsAre(9));
  EXPECT_THAT(cores_of_device(row, available, 1, 1), ElementsAre(4));
  row.cores_per_device = 2;
  row.device_ids = {1, 0};
  EXPECT_THAT(cores_of_device(row, available, 0, 0), ElementsAre(8, 9));
  EXPECT_THAT(cores_of_device(row, available, 1, 1), ElementsAre(4, 6));
}

TEST(CoresOfADevice, WithoutAnIdAreThoseOfTheUsualOne) {
  EXPECT_THAT(cores_of_device({}, {4, 6, 8, 9}, 0, 2), ElementsAre(8));
}

TEST(CoresOfADevice, AreCountedAroundWhereThereAreTooFew) {
  Config row;
  row.cores_per_device = 2;
  row.device_ids = {1};
  EXPECT_THAT(cores_of_device(row, {4, 6, 8}, 0, 0), ElementsAre(8, 4));
}

}  // namespace
}  // namespace stratagem::bench::core_demand_test
