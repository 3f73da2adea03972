#include "strategies/runtime/choice.h"

#include <gtest/gtest.h>

namespace stratagem::runtime::choice_test {
namespace {

using Level = Choice<"none", "some", "all">;

struct Plain {
  Level level = "some";
};
struct Extended : Plain {};

TEST(Choice, IsOneOfItsNames) {
  const Level level = "some";
  EXPECT_TRUE(level == "some" && level != "all");
  EXPECT_TRUE(level > "none" && level < "all") << "in the order of the list";
  EXPECT_EQ(level.name(), "some");
  EXPECT_EQ(fmt::format("{:>5}", level), " some");
  EXPECT_EQ(level.pick(0, 5, 9), 5);
}

TEST(Choice, IsFoundByItsWholeName) {
  EXPECT_EQ(Level::find("all"), Level("all"));
  for (const char* other : {"", "al", "alls", "All"}) {
    EXPECT_EQ(Level::find(other), std::nullopt) << other;
  }
}

TEST(ChoiceMember, ReadsAndSetsTheFieldOfAStructThatInheritsIt) {
  const ChoiceMember<Extended> member(&Plain::level);
  EXPECT_EQ(std::vector(member.names.begin(), member.names.end()),
            (std::vector<std::string_view>{"none", "some", "all"}));
  Extended object;
  EXPECT_EQ(member.name_in(object), "some");
  EXPECT_TRUE(member.set(object, "all"));
  EXPECT_FALSE(member.set(object, "every"));
  EXPECT_EQ(object.level, Level("all"));
}

}  // namespace
}  // namespace stratagem::runtime::choice_test
