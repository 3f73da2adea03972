#include "bench/worker/canary.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace stratagem::bench::canary_test {
namespace {

struct Found {
  std::size_t products = 0;
  double fastest_ms = 0;

  bool operator==(const Found&) const = default;
};

void PrintTo(const Found& found, std::ostream* stream) {
  *stream << found.products << " products, the fastest of " << found.fastest_ms << " ms";
}

/// Of products that take so long, up to the last one that is asked for.
Found found_in(const std::vector<double>& times_ms) {
  CanaryTimes times;
  std::size_t products = 0;
  while (times.should_continue(times_ms.at(products++))) continue;
  return {products, times.fastest_ms()};
}

TEST(CanaryTimes, TheFirstProductWarmsUpAndDoesNotCount) {
  EXPECT_EQ(found_in({5, 20, 20}), (Found{3, 20}));
}

TEST(CanaryTimes, TwoProductsCountAtLeast) {
  EXPECT_EQ(found_in({20, 20, 20}), (Found{3, 20}));
  EXPECT_EQ(found_in({900, 20, 30}), (Found{3, 20})) << "however long the first one takes";
}

TEST(CanaryTimes, GoOnUntilTheTwoFastestAgree) {
  EXPECT_EQ(found_in({20, 22, 20, 25, 20.3}), (Found{5, 20}));
  EXPECT_EQ(found_in({20, 20.3, 20}), (Found{3, 20}));
}

TEST(CanaryTimes, EndAfterTenThatDoNotAgree) {
  EXPECT_EQ(found_in({9, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11}), (Found{11, 11}));
}

TEST(CanaryTimes, EndWhenTheyHaveTakenTooLong) {
  EXPECT_EQ(found_in({60, 90, 80, 71}), (Found{4, 71}));
}

}  // namespace
}  // namespace stratagem::bench::canary_test
