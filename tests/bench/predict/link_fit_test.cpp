#include "bench/predict/link_fit.h"

#include <gtest/gtest.h>

namespace stratagem::bench::link_fit_test {
namespace {

TEST(LinkFit, ARelativeErrorCountsTheSameAtEverySize) {
  // Small messages take 1 ms. The large ones lie 10% off a line of 1 us a kB: in milliseconds that
  // is a hundred times the latency, which they must not decide.
  const auto link = fit_link({{1e3, 1.0}, {2e3, 1.0}, {1e9, 900}, {2e9, 2200}});
  EXPECT_NEAR(link.latency_ms, 1.0, 0.01);
  EXPECT_NEAR(link.gigabytes_per_second, 1.0, 0.05);
}

TEST(LinkFit, AMeasuredLinkTakesTheProcessorShareOfTheNearestSize) {
  const MeasuredLink link({{1000, 1.0, 0.75}, {9000, 9.0, 0.25}});
  EXPECT_EQ(link.transfer(2000).processor_share, 0.75);
  EXPECT_EQ(link.transfer(8000).processor_share, 0.25);
  EXPECT_NEAR(link.transfer(5000).alone_ms, 5.0, 1e-9);
}

TEST(LinkOfARing, ARingOfFourTakesItsShareOfTheBytesThreeTimesOver) {
  // 1 ms and 1 ms a MB between two.
  const std::vector<LinkTime> two = {{1'000'000, 2.0, 0.5}, {9'000'000, 10.0, 0.25}};
  const std::vector<LinkTime> four = link_of_ring(two, 4);
  EXPECT_NEAR(four[0].ms, 3 * 1 + 1.5 * 1, 1e-9);
  EXPECT_NEAR(four[1].ms, 3 * 1 + 1.5 * 9, 1e-9);
  EXPECT_EQ(four[1].processor_share, 0.25);
  EXPECT_NEAR(link_of_ring(two, 2)[1].ms, 10, 1e-9);
}

}  // namespace
}  // namespace stratagem::bench::link_fit_test
