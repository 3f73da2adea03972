#include "strategies/schedules/action_set.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/strategies/action_letters.h"

namespace stratagem::schedules::action_set_test {
namespace {

TEST(ActionSet, HasWhatWasInserted) {
  ActionSet set({{{F, 0, 0}, {F, 0, 1}}, {{B, 2, 0}}});
  EXPECT_FALSE(set.contains({F, 0, 1}));
  EXPECT_TRUE(set.insert({F, 0, 1}));
  EXPECT_FALSE(set.insert({F, 0, 1}));
  EXPECT_TRUE(set.contains({F, 0, 1}));
  EXPECT_FALSE(set.contains({F, 1, 0}));
  EXPECT_FALSE(set.contains({B, 0, 1}));
}

TEST(ActionSet, HasNothingBeyondItsLists) {
  ActionSet set({{{F, 0, 0}}});
  EXPECT_FALSE(set.contains({F, 1, 0}));
  EXPECT_FALSE(set.contains({F, 0, -1}));
  EXPECT_THROW(set.insert({F, 1, 0}), std::out_of_range);
}

}  // namespace
}  // namespace stratagem::schedules::action_set_test
