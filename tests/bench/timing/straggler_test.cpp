#include "bench/timing/straggler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace stratagem::bench::straggler_test {
namespace {

using schedules::Action;
using schedules::ActionKind;
using ::testing::HasSubstr;

Config config_of(const std::string& text) {
  Config config;
  config.straggler = text;
  return config;
}

std::string refusal(const std::string& text) {
  try {
    straggler_of(config_of(text), 2);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Straggler, NamesARankAndADelay) {
  EXPECT_FALSE(straggler_of(config_of("none"), 2).has_value());
  const auto straggler = straggler_of(config_of("1:2.5"), 2);
  ASSERT_TRUE(straggler.has_value());
  EXPECT_EQ(straggler->rank, 1);
  EXPECT_DOUBLE_EQ(straggler->delay.count(), 2.5);
}

TEST(Straggler, RefusesInOneLine) {
  for (const char* wrong : {"1", "1:", ":5", "x:5", "1:0", "1:-3", "1:5ms"}) {
    EXPECT_THAT(refusal(wrong), HasSubstr("expected RANK:MS")) << wrong;
  }
  EXPECT_THAT(refusal("2:5"), HasSubstr("ranks are 0 to 1"));
}

TEST(Straggler, IsLateOnceAStepAndOnItsRankOnly) {
  const Straggler straggler{1, std::chrono::milliseconds(250)};
  int calls = 0;
  const auto late = with_straggler(straggler, 1, [&](const Action&) { ++calls; });
  const auto begin = std::chrono::steady_clock::now();
  late({ActionKind::forward, 2, 0});
  const auto first = std::chrono::steady_clock::now();
  EXPECT_GE(first - begin, std::chrono::milliseconds(250));
  late({ActionKind::forward, 2, 1});
  late({ActionKind::forward, 3, 0});
  late({ActionKind::backward, 2, 0});
  EXPECT_EQ(calls, 4);
  const auto second_step = std::chrono::steady_clock::now();
  EXPECT_LT(second_step - first, std::chrono::milliseconds(250));
  late({ActionKind::forward, 2, 0});
  EXPECT_GE(std::chrono::steady_clock::now() - second_step, std::chrono::milliseconds(250));
  EXPECT_FALSE(with_straggler(straggler, 0, {})) << "another rank has nothing to call";
}

}  // namespace
}  // namespace stratagem::bench::straggler_test
