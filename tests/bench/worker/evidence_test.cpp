// What a launch leaves behind, and the reference with which it is compared.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/config/batches.h"
#include "bench/proof/judge.h"
#include "tests/bench/worker/small_rows.h"

namespace stratagem::bench::evidence_test {
namespace {

using testing::SizeIs;

Evidence evidence_of_launch(const Config& row) {
  return measure({.config = row, .evidence = true}, {}).evidence.at(0);
}

Reference reference_to(const Config& row, const Evidence& launch) {
  return reference({.config = row, .lengths = {std::ssize(launch.loss)}}, {}).reference;
}

TEST(Evidence, OfALaunchPassesAgainstItsReference) {
  std::vector<Config> rows = {small_row("single"), small_row("pipeline"),
                              small_row("model_parallel"), small_row("data_parallel")};
  rows.push_back(small_row());
  rows.back().inputs = "device";
  rows.push_back(small_row());
  rows.back().optimizer = "adamw";
  rows.back().clip_gradients = 0.1;
  rows.push_back(small_row());
  rows.back().dtype = "float64";
  rows.push_back(small_row());
  rows.back().protocol = "tutorial";
  rows.back().repetitions = 1;
  for (const Config& row : rows) {
    const Evidence launch = evidence_of_launch(row);
    const reports::Proof verdict = judge(launch, reference_to(row, launch));
    EXPECT_TRUE(verdict.passed) << row.strategy << ": " << verdict.message;
  }
}

TEST(Evidence, OfAnotherRowDoesNotPass) {
  const Config row = small_row();
  Config faster = row;
  faster.learning_rate *= 1.01;
  const Evidence launch = evidence_of_launch(faster);
  EXPECT_FALSE(judge(launch, reference_to(row, launch)).passed);
}

TEST(Evidence, HasTheLossesOfAllSteps) {
  const MeasureResult measured = measure({.config = small_row(), .evidence = true}, {});
  const reports::Repetition& launch = measured.repetitions.at(0);
  const auto warm_up = static_cast<std::size_t>(launch.counters.at("warm_up_steps"));
  const std::vector<double>& loss = measured.evidence.at(0).loss;
  ASSERT_THAT(loss, SizeIs(warm_up + launch.loss.size()));
  EXPECT_TRUE(std::equal(launch.loss.begin(), launch.loss.end(),
                         loss.begin() + static_cast<std::ptrdiff_t>(warm_up)));
}

TEST(Evidence, IsLeftOutUnlessAskedFor) {
  EXPECT_THAT(measure({.config = small_row()}, {}).evidence, SizeIs(0));
}

TEST(Evidence, OfAFloat64ResNetPasses) {
  Config row = small_row("single", "resnet18");
  row.dtype = "float64";
  row.image_size = 40;
  row.global_batch_size = 4;
  row.steps = 2;
  row.cut.clear();
  const Evidence launch = evidence_of_launch(row);
  const Reference reference = reference_to(row, launch);
  EXPECT_TRUE(reference.rounded.loss.empty());
  EXPECT_EQ(reference.shakings, 1);
  EXPECT_FALSE(reference.shaken.loss.empty());
  const reports::Proof verdict = judge(launch, reference);
  EXPECT_TRUE(verdict.passed) << verdict.message;
  EXPECT_TRUE(verdict.is_conclusive());
}

TEST(Evidence, OfAStateThatIsNotFiniteNamesTheEntry) {
  Config row = small_row("single");
  row.protocol = "tutorial";
  row.steps = row.repetitions = 1;
  row.learning_rate = 1e300;  // the loss of the only step is that before its update
  try {
    evidence_of_launch(row);
    FAIL() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "net1.bias is not finite after the last step; a smaller --learning-rate may help");
  }
}

TEST(Batches, AreFewerWhereTheyAreLarge) {
  const Config row = small_row();
  EXPECT_EQ(different_batches(row, 48 * 3 * 128 * 128), most_batches_in_turn);
  EXPECT_EQ(different_batches(row, elements_of_all_batches / 5), 5);
  EXPECT_EQ(different_batches(row, elements_of_all_batches * 4), fewest_batches_in_turn);
}

TEST(Batches, OneStaysOnTheDevice) {
  Config row = small_row();
  row.inputs = "device";
  EXPECT_EQ(different_batches(row, 1), 1);
  row.inputs = "host";
  row.protocol = "tutorial";
  EXPECT_EQ(different_batches(row, 1), row.steps) << "each repeat is a training of its own";
}

TEST(Reference, KeepsTheStatesThatWereAskedFor) {
  const ReferenceResult result =
      reference({.config = small_row(), .lengths = {2, 4}, .skipped = {3}}, {});
  for (const Trajectory* each : {&result.reference.exact, &result.reference.rounded}) {
    EXPECT_THAT(each->loss, SizeIs(4));
    EXPECT_NE(each->after(0), nullptr);
    EXPECT_NE(each->after(2), nullptr);
    EXPECT_EQ(each->after(3), nullptr);
    EXPECT_NE(each->after(4), nullptr);
  }
  EXPECT_EQ(result.reference.oracle, "one device in float64, 4 batches");
}

}  // namespace
}  // namespace stratagem::bench::evidence_test
