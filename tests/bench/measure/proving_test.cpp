// Rows whose timed steps are compared with those of one device.
#include "bench/measure/proving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/fake_workers.h"

namespace stratagem::bench::proving_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ProvingTest : public MeasureTest {
 protected:
  /// The second launch has this evidence.
  void second_launch_shows(const Evidence& evidence) {
    workers_.on<MeasureJob>(
        [this, evidence, next = 0](const MeasureJob& job) mutable -> FakeWorkers::Reply {
          MeasureResult result{.repetitions = {FakeWorkers::repetition(100)}};
          asked_.push_back(job.evidence);
          result.evidence = {next++ == 1 ? evidence : FakeWorkers::evidence()};
          return answered(result);
        });
  }

  std::vector<bool> asked_;  // for evidence
  std::vector<std::vector<std::int64_t>> lengths_;
};

TEST_F(ProvingTest, EveryLaunchHasAVerdict) {
  const Measurement measured = measure_rows({row(1), row(2)});
  EXPECT_EQ(exit_code(measured), 0);
  for (const reports::Row& each : measured.results.rows) {
    ASSERT_THAT(each.repetitions, SizeIs(2));
    for (const reports::Repetition& launch : each.repetitions) {
      ASSERT_TRUE(launch.proof);
      EXPECT_TRUE(launch.proof->passed) << launch.proof->message;
      EXPECT_EQ(launch.proof->oracle, "one device, 2 steps");
    }
  }
  EXPECT_EQ(workers_.count<ReferenceJob>(), 1) << "both rows are of one workload";
  EXPECT_THAT(notes_.phases, testing::Contains("proving"));
}

TEST_F(ProvingTest, AWrongLaunchEndsItsRowWithExitCodeOne) {
  Evidence wrong = FakeWorkers::evidence();
  wrong.state = FakeWorkers::state(3.1);
  second_launch_shows(wrong);
  const Measurement measured = measure_rows({row(1)});
  EXPECT_EQ(exit_code(measured), 1);
  const auto& launches = measured.results.rows.front().repetitions;
  ASSERT_THAT(launches, SizeIs(3)) << "two launches, and what is wrong";
  EXPECT_TRUE(launches[0].proof->passed);
  EXPECT_FALSE(launches[1].proof->passed);
  EXPECT_THAT(launches[2].error->message,
              HasSubstr("the timed steps are wrong: launch 2: weight after step 1 differs"));
  EXPECT_THAT(notes_.lines, testing::Contains(HasSubstr("the timed steps are wrong")));
}

TEST_F(ProvingTest, LaunchesOfARowAgreeBitForBit) {
  Evidence another = FakeWorkers::evidence();
  another.loss[1] += 1e-12;
  second_launch_shows(another);
  const Measurement measured = measure_rows({row(1)});
  EXPECT_EQ(exit_code(measured), 1);
  EXPECT_THAT(measured.results.rows.front().repetitions.back().error->message,
              HasSubstr("launch 2: two launches differ: the loss of step 1 is 1 and "));
}

TEST_F(ProvingTest, NothingIsProvenWhereNothingIsVerified) {
  second_launch_shows(FakeWorkers::evidence());
  Config unverified = row(1);
  unverified.verify = false;
  const Measurement measured = measure_rows({unverified});
  EXPECT_THAT(asked_, ElementsAre(false, false));
}

TEST_F(ProvingTest, AReferenceIsKeptInTheCache) {
  measure_rows({row(1)});
  workers_.forget();
  EXPECT_TRUE(measure_rows({row(2)}).results.rows.front().repetitions.front().proof->passed);
  EXPECT_EQ(workers_.count<ReferenceJob>(), 0);
}

TEST_F(ProvingTest, ARowWithoutAReferenceStaysWithoutAProof) {
  workers_.on<ReferenceJob>(
      [](const ReferenceJob&) { return FakeWorkers::failure("out of memory"); });
  const Measurement measured = measure_rows({row(1)});
  EXPECT_EQ(exit_code(measured), 0);
  for (const auto& launch : measured.results.rows.front().repetitions) EXPECT_FALSE(launch.proof);
  EXPECT_THAT(notes_.lines,
              testing::Contains(HasSubstr("no proof of the timed steps: out of memory")));
}

TEST_F(ProvingTest, LaunchesOfOtherLengthsShareAReference) {
  workers_.on<MeasureJob>([next = 2](const MeasureJob&) mutable -> FakeWorkers::Reply {
    Evidence longer = FakeWorkers::evidence();
    longer.loss.resize(static_cast<std::size_t>(next), 1.0);
    next += 2;
    return answered(
        MeasureResult{.repetitions = {FakeWorkers::repetition(100)}, .evidence = {longer}});
  });
  workers_.on<ReferenceJob>([this](const ReferenceJob& job) -> FakeWorkers::Reply {
    lengths_.push_back(job.lengths);
    return std::nullopt;
  });
  measure_rows({row(1)});
  measure_rows({row(2)});
  EXPECT_THAT(lengths_, ElementsAre(ElementsAre(2, 3, 4), ElementsAre(2, 3, 4, 6, 7, 8)))
      << "the second run keeps what the first has asked for";
  workers_.forget();
  measure_rows({row(4)});
  EXPECT_EQ(workers_.count<ReferenceJob>(), 0);
}

TEST_F(ProvingTest, RoundingsAreShakenOnlyForALaunchBeyondTheRoundedBound) {
  std::vector<std::int64_t> shaken;
  workers_.on<ReferenceJob>([&](const ReferenceJob& job) -> FakeWorkers::Reply {
    shaken.push_back(job.shakings);
    ReferenceResult result{.reference = FakeWorkers::reference(job)};
    result.reference.magnifies = true;
    result.reference.shakings = job.shakings;
    if (job.shakings > 0) {
      result.reference.shaken = result.reference.exact;
      for (StateAt& each : result.reference.shaken.states) each.state = FakeWorkers::state(3.01);
    }
    return answered(result);
  });
  EXPECT_EQ(exit_code(measure_rows({row(1)})), 0);
  EXPECT_THAT(shaken, ElementsAre(0));

  Evidence magnified = FakeWorkers::evidence();
  magnified.state = FakeWorkers::state(3.01);
  second_launch_shows(magnified);
  EXPECT_EQ(exit_code(measure_rows({row(2)})), 0);
  EXPECT_THAT(shaken, ElementsAre(0, most_shakings)) << "the first answer was kept";
  EXPECT_EQ(exit_code(measure_rows({row(2)})), 0);
  EXPECT_THAT(shaken, SizeIs(2)) << "so was the second";

  magnified.state = FakeWorkers::state(3.1);
  second_launch_shows(magnified);
  EXPECT_EQ(exit_code(measure_rows({row(4)})), 1) << "more than the shaken trajectory allows";
}

TEST_F(ProvingTest, AnUpdateIsSkippedForADynamicScaleAlone) {
  Evidence skips = FakeWorkers::evidence();
  skips.skipped = {1};
  second_launch_shows(skips);
  const Measurement measured = measure_rows({row(1)});
  EXPECT_EQ(exit_code(measured), 1);
  EXPECT_THAT(measured.results.rows.front().repetitions.back().error->message,
              HasSubstr("step 1 skipped its update without a dynamic loss scale"));
  EXPECT_EQ(workers_.count<ReferenceJob>(), 2) << "one for each pattern of skipped updates";
}

TEST_F(ProvingTest, AnEarlierRunsEvidenceIsKept) {
  const Measurement first = measure_rows({row(1)});
  Config longer = row(1);
  longer.repetitions = 3;
  options_.resume = true;
  const Measurement measured = measure_rows({longer});
  for (const auto& launch : measured.results.rows.front().repetitions) {
    EXPECT_TRUE(launch.proof && launch.proof->passed);
  }
}

}  // namespace
}  // namespace stratagem::bench::proving_test
