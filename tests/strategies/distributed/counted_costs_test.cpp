#include "strategies/distributed/counted_costs.h"

#include <gtest/gtest.h>

namespace stratagem::distributed::counted_costs_test {
namespace {

strategies::Costs formula() {
  strategies::Costs costs;
  costs.collectives = {{"all_reduce", {.calls = 3, .payload_bytes = 72}},
                       {"send", {.calls = 1, .payload_bytes = 8}}};
  return costs;
}

TEST(CountedCosts, EqualsTheFormulaWhateverTheBarriers) {
  EXPECT_EQ(difference_from_costs({{"all_reduce", {3, 72, 144}}, {"send", {1, 8, 8}}}, formula()),
            "");
  EXPECT_EQ(
      difference_from_costs(
          {{"all_reduce", {3, 72, 144}}, {"send", {1, 8, 8}}, {"barrier", {1, 0, 0}}}, formula()),
      "");
}

TEST(CountedCosts, SeesACallTooMany) {
  EXPECT_EQ(difference_from_costs({{"all_reduce", {4, 96, 192}}, {"send", {1, 8, 8}}}, formula()),
            "all_reduce: 4 calls and 96 bytes a step, by formula 3 calls and 72 bytes");
}

TEST(CountedCosts, SeesOtherBytesInAsManyCalls) {
  EXPECT_EQ(difference_from_costs({{"all_reduce", {3, 72, 144}}, {"send", {1, 9, 9}}}, formula()),
            "send: 1 calls and 9 bytes a step, by formula 1 calls and 8 bytes");
}

TEST(CountedCosts, SeesWhatIsMissingAndWhatNoFormulaHas) {
  EXPECT_EQ(difference_from_costs({{"all_reduce", {3, 72, 144}}}, formula()),
            "send: 0 calls and 0 bytes a step, by formula 1 calls and 8 bytes");
  EXPECT_EQ(difference_from_costs({{"broadcast", {1, 4, 4}}}, {}),
            "broadcast: 1 calls and 4 bytes a step, by formula 0 calls and 0 bytes");
}

}  // namespace
}  // namespace stratagem::distributed::counted_costs_test
