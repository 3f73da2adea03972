// A machine that is slow from a run's beginning to its end.
#include "bench/measure/calm_canary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/fake_workers.h"

namespace stratagem::bench::calm_canary_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class CalmCanaryTest : public MeasureTest {
 protected:
  /// What is said of a run whose canaries on one device usually take so long.
  std::map<std::string, NoiseSource> found(double usual_ms) {
    return slow_throughout(environment_, {{"one device", usual_ms}});
  }

  /// What disturbed a whole run of one row.
  std::vector<std::string> disturbances_of_a_run(double canary_ms) {
    workers_.on<MeasureJob>([canary_ms](const MeasureJob&) {
      return answered(MeasureResult{.repetitions = {FakeWorkers::repetition(1)}},
                      canary(canary_ms, canary_ms));
    });
    environment_.watched = SystemPaths{.sys = folder_ / "sys", .proc = folder_ / "proc"};
    return measure({row(4)}, options_, environment_, notes_).results.context.disturbances;
  }

  MeasureEnvironment environment_ = environment();
};

TEST_F(CalmCanaryTest, IsTheLeastOfAllRuns) {
  EXPECT_THAT(found(22), IsEmpty()) << "the first knows no other";
  EXPECT_THAT(found(20), IsEmpty());
  EXPECT_THAT(found(20.9), IsEmpty());
  const auto slow = found(22);
  ASSERT_THAT(slow, SizeIs(1));
  EXPECT_THAT(to_string(slow.at("one device")),
              AllOf(HasSubstr("slow machine"), HasSubstr("one device"),
                    HasSubstr("10% longer throughout the run")));
  EXPECT_THAT(slow_throughout(environment_, {{"two devices", 30}}), IsEmpty());
}

TEST_F(CalmCanaryTest, OfNoCanaryIsNone) {
  found(0);
  EXPECT_THAT(found(20), IsEmpty());
}

TEST_F(CalmCanaryTest, HoldsForEveryBuildOnOneKindOfMachine) {
  found(20);
  environment_.identity["build"] = "abd";
  EXPECT_THAT(found(22), SizeIs(1));
  environment_.identity["kernel"] = "another";
  EXPECT_THAT(found(22), IsEmpty());
}

TEST_F(CalmCanaryTest, IsForgottenAfterAWeek) {
  found(20);
  age_by(6 * 24 * 3600);
  EXPECT_THAT(found(22), SizeIs(1));
  age_by(2 * 24 * 3600);
  EXPECT_THAT(found(22), IsEmpty());
}

TEST_F(CalmCanaryTest, IsNotComparedWhereOtherHostsTakePart) {
  found(20);
  environment_.ranks_share_cores = false;
  EXPECT_THAT(found(22), IsEmpty());
}

TEST_F(CalmCanaryTest, ARunSaysThatItWasSlowThroughout) {
  EXPECT_THAT(disturbances_of_a_run(20), Not(Contains(HasSubstr("slow machine"))));
  EXPECT_THAT(disturbances_of_a_run(24), Contains(HasSubstr("20% longer throughout the run")));
  EXPECT_THAT(notes_.lines, Contains(HasSubstr("disturbed by slow machine")));
}

}  // namespace
}  // namespace stratagem::bench::calm_canary_test
