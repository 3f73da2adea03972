// What is kept of a calibration, and when it is used again.
#include "bench/measure/calibrator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/fake_workers.h"

namespace stratagem::bench::calibrator_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CalibratorTest : public MeasureTest {
 protected:
  CalibratorTest() { answer_with(20, 20); }

  /// Every job takes place under these conditions from now on.
  void answer_with(double canary_before_ms, double canary_after_ms, double other_cores = 0) {
    conditions_ = canary(canary_before_ms, canary_after_ms);
    conditions_.other_processes_cores = other_cores;
    workers_.on<CanaryJob>(
        [this](const CanaryJob&) { return answered(CanaryResult(), conditions_); });
    workers_.on<CalibrateDeviceJob>([this](const CalibrateDeviceJob&) {
      return answered(CalibrateDeviceResult{.gemm_gflops = 100}, conditions_);
    });
  }

  Calibrated<CalibrateDeviceResult> calibrate(const Config& config = {}) {
    MeasureEnvironment own = environment();
    own.untimed = untimed_;
    return Calibrator(own).calibrate(json("the peak"), job_about<CalibrateDeviceJob>(config),
                                     [this](const auto&) {
                                       if (contradictions_.empty()) return std::string();
                                       std::string first = contradictions_.front();
                                       contradictions_.erase(contradictions_.begin());
                                       return first;
                                     });
  }

  std::size_t measured() const { return workers_.count<CalibrateDeviceJob>(); }

  reports::Conditions conditions_;
  std::vector<std::string> contradictions_;
  bool untimed_ = false;
};

TEST_F(CalibratorTest, UsesItAgainWhileTheCanaryAgrees) {
  EXPECT_EQ(calibrate().basis.age_s, 0);
  answer_with(20.5, 20.5);
  age_by(3600);
  const auto kept = calibrate();
  EXPECT_EQ(measured(), 1u);
  EXPECT_EQ(kept.launched.result.gemm_gflops, 100);
  EXPECT_EQ(kept.launched.conditions.canary_before_ms.front(), 20) << "that of then";
  EXPECT_GE(kept.basis.age_s, 3600);
  EXPECT_EQ(kept.basis.doubt, "");
}

TEST_F(CalibratorTest, MeasuresAgainWhereTheCanaryIsFasterOrSlower) {
  calibrate();
  answer_with(20.7, 20.7);
  calibrate();
  EXPECT_EQ(measured(), 2u);
  answer_with(20, 20);
  calibrate();
  EXPECT_EQ(measured(), 3u);
}

TEST_F(CalibratorTest, MeasuresAgainAfterADay) {
  calibrate();
  age_by(24 * 3600);
  calibrate();
  EXPECT_EQ(measured(), 2u);
  age_by(-3600);  // of a clock that was set back
  calibrate();
  EXPECT_EQ(measured(), 3u);
}

TEST_F(CalibratorTest, MeasuresAgainWhenAsked) {
  Config config;
  calibrate(config);
  config.recalibrate = true;
  calibrate(config);
  EXPECT_EQ(measured(), 2u);
}

TEST_F(CalibratorTest, AsksForTheCanaryOnce) {
  calibrate();
  const MeasureEnvironment own = environment();
  Calibrator calibrator(own);
  const auto nothing = [](const auto&) { return ""; };
  calibrator.calibrate<CalibrateDeviceJob>("the peak", job_about<CalibrateDeviceJob>({}), nothing);
  calibrator.calibrate<CalibrateDeviceJob>("the peak", job_about<CalibrateDeviceJob>({}), nothing);
  EXPECT_EQ(workers_.count<CanaryJob>(), 1u);
  EXPECT_EQ(measured(), 1u);
}

TEST_F(CalibratorTest, MeasuresWhatWasDisturbedOnceMore) {
  workers_.on<CalibrateDeviceJob>([this](const CalibrateDeviceJob&) {
    const reports::Conditions now = measured() == 1 ? canary(20, 23) : canary(20, 20);
    return answered(CalibrateDeviceResult{.gemm_gflops = 100}, now);
  });
  EXPECT_EQ(calibrate().basis.doubt, "");
  EXPECT_EQ(measured(), 2u);
}

TEST_F(CalibratorTest, DoubtsWhatWasDisturbedTwiceAndDoesNotKeepIt) {
  answer_with(20, 20, /*other_cores=*/1000);
  EXPECT_THAT(calibrate().basis.doubt, HasSubstr("other programs used 1000.00 cores"));
  EXPECT_EQ(measured(), 2u);
  answer_with(20, 23);
  Config once;
  once.repeat_disturbed = false;
  EXPECT_THAT(calibrate(once).basis.doubt, HasSubstr("the canary took 15% longer"));
  EXPECT_EQ(measured(), 3u);
  answer_with(20, 20);
  EXPECT_EQ(calibrate().basis.doubt, "");
  EXPECT_EQ(measured(), 4u);
}

TEST_F(CalibratorTest, KeepsAndUsesWhatWasDisturbedWhereNobodyLooksAtTimes) {
  untimed_ = true;
  contradictions_ = {"alone dearer than busy"};
  answer_with(20, 23);
  EXPECT_EQ(calibrate().basis.doubt, "alone dearer than busy");
  answer_with(40, 40);
  EXPECT_EQ(calibrate().launched.result.gemm_gflops, 100);
  EXPECT_EQ(measured(), 1u);
  EXPECT_EQ(workers_.count<CanaryJob>(), 0u);
}

TEST_F(CalibratorTest, MeasuresAContradictionAgain) {
  contradictions_ = {"alone dearer than busy"};
  EXPECT_EQ(calibrate().basis.doubt, "");
  EXPECT_EQ(measured(), 2u);
}

TEST_F(CalibratorTest, DoubtsWhatContradictsItselfAgainAndAgain) {
  contradictions_ = {"first", "second", "third", "fourth"};
  EXPECT_EQ(calibrate().basis.doubt, "third");
  EXPECT_EQ(measured(), 3u);
  contradictions_.clear();
  calibrate();
  EXPECT_EQ(measured(), 4u) << "it was kept";
}

}  // namespace
}  // namespace stratagem::bench::calibrator_test
