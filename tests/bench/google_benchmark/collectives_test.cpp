#include "bench/google_benchmark/collectives.h"
#include "bench/predict/link_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace stratagem::bench::collectives_test {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(Collectives, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 2), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor("reduce_scatter", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("broadcast", 4), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor("send", 4), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor("reduce", 4), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor("gather", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("scatter", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("all_to_all", 4), 0.75);
  EXPECT_THROW(bus_factor("all_scatter", 4), std::invalid_argument);
}

TEST(Collectives, EveryNameHasAFactor) {
  for (const std::string& name : collective_names()) EXPECT_GT(bus_factor(name, 2), 0) << name;
}

TEST(Collectives, TheLibrarysReduceScatterStandsBesideOursWhereThereIsOne) {
  const auto has_both = [](decltype(Config::device) device, decltype(Config::backend) backend) {
    Config config;
    config.device = device;
    config.backend = backend;
    const auto names = distinct_collectives(config);
    EXPECT_THAT(names, Contains("reduce_scatter"));
    return std::ranges::find(names, "reduce_scatter_library") != names.end();
  };
  EXPECT_TRUE(has_both("cpu", "gloo"));
  EXPECT_FALSE(has_both("cuda", "gloo"));
  EXPECT_FALSE(has_both("cuda", "nccl"));
}

TEST(Collectives, SizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("77", "x"), 77);
  EXPECT_EQ(parse_bytes("4K", "x"), 4096);
  EXPECT_EQ(parse_bytes("256M", "x"), 268435456);
  for (const char* wrong : {"", "0", "-1", "4k", "4KB", "M"}) {
    EXPECT_THROW(parse_bytes(wrong, "--min-bytes"), std::invalid_argument) << wrong;
  }
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(268435456), "256 MiB");
}

TEST(Collectives, SizesReachBothEnds) {
  EXPECT_THAT(message_sizes(1024, 20000, 4), ElementsAre(1024, 4096, 16384, 20000));
  EXPECT_THAT(message_sizes(8, 8, 2), ElementsAre(8));
  EXPECT_THROW(message_sizes(9, 8, 2), std::invalid_argument);
}

TEST(Collectives, BandwidthIsSizeOverTheMedianTime) {
  const auto repetition = collective_repetition(
      "all_reduce", 4, 1, {.bytes = 2'000'000, .wire_bytes = 3'000'000, .ms = {1.0, 2.0, 4.0}});
  EXPECT_THAT(repetition.counters.at("algorithm_gb_per_s"), DoubleNear(1.0, 1e-12));
  EXPECT_THAT(repetition.counters.at("bus_gb_per_s"), DoubleNear(1.5, 1e-12));
  EXPECT_EQ(repetition.counters.at("wire_bytes"), 3e6);
  EXPECT_EQ(repetition.index, 1);
}

TEST(Collectives, TheLinkIsFoundAgain) {
  std::vector<TransferTime> times;
  for (const double bytes : {1e3, 1e5, 1e7}) times.push_back({bytes, 0.05 + bytes / 2e6});
  const auto link = fit_link(times);
  EXPECT_NEAR(link.latency_ms, 0.05, 1e-9);
  EXPECT_NEAR(link.gigabytes_per_second, 2.0, 1e-9);
  EXPECT_NEAR(link.transfer_ms(1e6), 0.55, 1e-9);
  EXPECT_THROW(fit_link({{1, 1}}), std::invalid_argument);
  EXPECT_THROW(fit_link({{1, 1}, {1, 1}}), std::invalid_argument);
}

TEST(Collectives, ALinkIsNeverNegative) {
  const auto all_latency = fit_link({{1e3, 0.5}, {1e5, 0.4}});
  EXPECT_EQ(all_latency.gigabytes_per_second, 0);
  EXPECT_GT(all_latency.latency_ms, 0.4);
  EXPECT_LT(all_latency.latency_ms, 0.5);
  const auto all_bandwidth = fit_link({{1e6, 0.9}, {2e6, 2.0}});
  EXPECT_EQ(all_bandwidth.latency_ms, 0);
  EXPECT_NEAR(all_bandwidth.gigabytes_per_second, 1.05, 0.06);
}

}  // namespace
}  // namespace stratagem::bench::collectives_test
