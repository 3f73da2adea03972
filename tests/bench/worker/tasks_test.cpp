// The tasks of a worker, called in this process.
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "bench/config/placement.h"
#include "bench/worker/tasks.h"
#include "reports/statistics.h"
#include "strategies/schedules/schedule.h"
#include "tests/bench/oracle/broken_operators.h"
#include "tests/bench/worker/small_rows.h"

namespace stratagem::bench::tasks_test {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string refusal(const Config& row) {
  const std::string message = checked(row).error;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message.empty() ? "accepted" : message;
}

double sum_of(const reports::Breakdown& parts) {
  return parts.compute + parts.communication_exposed + parts.wait + parts.bubble + parts.optimizer +
         parts.input_copy + parts.other;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void expect_sound(const reports::Repetition& repetition, double step_ms) {
  for (const auto& device : repetition.devices) {
    const auto& parts = device.breakdown_ms;
    EXPECT_NEAR(sum_of(parts), step_ms, 1e-6 * step_ms) << "device " << device.device;
    for (const double part :
         {parts.compute, parts.communication_exposed, parts.communication_hidden, parts.wait,
          parts.bubble, parts.optimizer, parts.input_copy, parts.other}) {
      EXPECT_GE(part, -1e-9 * step_ms) << "device " << device.device;
    }
    EXPECT_GT(parts.compute, 0);
    EXPECT_GT(parts.optimizer, 0);
    EXPECT_NEAR(device.bubble.measured, parts.bubble / step_ms, 1e-6);
  }
  for (const double loss : repetition.loss) EXPECT_TRUE(std::isfinite(loss));
}

TEST(CheckTask, PartsThatBatchNormCannotNormaliseAreRefused) {
  Config row = unchecked_row("data_parallel", "resnet18");
  row.global_batch_size = 3;  // parts of 2 and 1
  EXPECT_EQ(refusal(row), "accepted") << "2x2 positions are enough";
  row.image_size = 32;
  EXPECT_THAT(refusal(row), HasSubstr("replica 1 has a micro-batch of 1 sample, too few"));
  row.global_batch_size = 4;
  EXPECT_EQ(refusal(row), "accepted");
}

TEST(CheckTask, FillsInTheCut) {
  EXPECT_THAT(checked(unchecked_row("pipeline", "resnet18")).config.cut, ElementsAre("layer3"));
  EXPECT_THAT(checked(unchecked_row("model_parallel", "toy")).config.cut, ElementsAre("net2"));
  EXPECT_THAT(checked(unchecked_row("single", "toy")).config.cut, ElementsAre());
  EXPECT_EQ(checked(unchecked_row("pipeline", "toy")).stages, 2);
  EXPECT_EQ(checked(unchecked_row("single", "toy")).stages, 1);
  Config row = unchecked_row("pipeline", "toy");
  row.partition = "balanced";
  EXPECT_THAT(checked(row).config.cut, ElementsAre(::testing::AnyOf("relu", "net2")));
  row.cut = {"relu"};
  EXPECT_THAT(checked(row).config.cut, ElementsAre("relu")) << "the user's own cut goes first";
}

TEST(CheckTask, ASingleDeviceTakesASplitSizeLargerThanItsBatch) {
  Config row = unchecked_row("single", "toy");
  row.global_batch_size = 4;
  row.split_size = 12;
  EXPECT_EQ(refusal(row), "accepted");
}

TEST(CheckTask, RefusesInOneLine) {
  const auto with = [](const std::function<void(Config&)>& change,
                       const std::string& model = "resnet18") {
    Config row = unchecked_row("pipeline", model);
    change(row);
    return refusal(row);
  };
  EXPECT_EQ(with([](Config&) {}), "accepted");
  EXPECT_THAT(with([](Config& row) { row.cut = {"layer9"}; }), HasSubstr("no layer \"layer9\""));
  EXPECT_THAT(with([](Config& row) { row.cut = {"conv1"}; }), HasSubstr("--cut: \"conv1\""));
  EXPECT_THAT(with([](Config& row) {
                row.cut = {"layer2", "layer3"};
              }),
              HasSubstr("--cut layer2+layer3: it makes 3 stages, but the row has 2"));
  EXPECT_EQ(with([](Config& row) { row.image_size = 16; }),
            "image 16x16 is too small for resnet18: at least 32x32");
  EXPECT_EQ(with([](Config& row) { row.devices = 4; }, "toy"),
            "--devices 4: 4 stages need as many layers, and toy has 3; use fewer devices, or a "
            "schedule with fewer stages on each");
  EXPECT_THAT(with([](Config& row) {
                row.devices = 3;
                row.partition = "tutorial";
              }),
              HasSubstr("--partition tutorial"));
  EXPECT_THAT(with([](Config& row) { row.model = "resnet19"; }),
              HasSubstr("unknown model \"resnet19\": did you mean \"resnet18\"?"));
  EXPECT_THAT(with([](Config& row) { row.strategy = "pipelin"; }),
              HasSubstr("unknown strategy \"pipelin\": did you mean \"pipeline\"?"));
  EXPECT_THAT(with([](Config& row) { row.schedule = "gpip"; }),
              HasSubstr("unknown schedule \"gpip\": did you mean \"gpipe\"?"));
  EXPECT_THAT(with([](Config& row) {
                row.device = "cuda";
                row.devices = 1000;
              }),
              HasSubstr("--device"));
}

TEST(CheckTask, ABadRowLeavesTheOthers) {
  Config bad = unchecked_row("pipeline", "toy");
  bad.cut = {"nothing"};
  const CheckJob job{
      .configs = {unchecked_row("single", "toy"), bad, unchecked_row("pipeline", "toy")}};
  const std::vector<CheckedRow> rows = check(job, {}).rows;
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].error, "");
  EXPECT_NE(rows[1].error, "");
  EXPECT_EQ(rows[2].error, "");
}

TEST(PerformTask, WritesTheResultOfTheTask) {
  const nlohmann::json result =
      perform_task(CheckJob{.configs = {unchecked_row("single", "toy")}}, {});
  EXPECT_EQ(result_from_json<CheckJob>(result).rows.at(0).stages, 1);
}

TEST(VerifyTask, ProvesARowAndFindsItsFirstLoss) {
  const auto [verification, first_loss] = verify({.config = small_row("pipeline", "toy")}, {});
  EXPECT_TRUE(verification.passed) << verification.message;
  EXPECT_EQ(verification.scope, "batch 6 -> 3");
  EXPECT_EQ(first_loss.tolerance, 1e-4);
  EXPECT_GT(first_loss.value, 0);
}

TEST(VerifyTask, HasASecondVerdictInTheRowsOwnArithmetic) {
  for (const Dtype dtype : {Dtype("float32"), Dtype("float64"), Dtype("bfloat16")}) {
    // float32 has kernels of our own, which need wide layers.
    const bool wide = dtype == "float32";
    Config row = small_row("pipeline", wide ? "mlp" : "toy");
    row.dtype = dtype;
    const auto verification = verify({.config = row}, {}).verification;
    EXPECT_TRUE(verification.passed) << verification.message;
    ASSERT_TRUE(verification.own_arithmetic);
    const reports::Verdict& own = *verification.own_arithmetic;
    EXPECT_TRUE(own.passed) << own.message;
    EXPECT_EQ(own.scope, "layers full size; step full size");
    const std::string formats = dtype == "float64" ? dtype.name() : dtype.name() + " and float64";
    EXPECT_EQ(own.oracle, "reference kernels in " + formats + (wide ? ": 4" : ": 3") +
                              " layers, a step of 3 micro-batches");
    EXPECT_LE(own.max_relative_error, own.tolerance);
  }
}

TEST(VerifyTask, SeesAKernelThatIsWrongInFloat32Alone) {
  const broken::BrokenOperator broken("mkldnn::_linear_pointwise", broken::lose_the_last_lane);
  const auto verification = verify({.config = small_row("pipeline", "mlp")}, {}).verification;
  EXPECT_LE(verification.max_relative_error, verification.tolerance) << "float64 does not see it";
  EXPECT_FALSE(verification.passed);
  EXPECT_FALSE(verification.own_arithmetic->passed);
  EXPECT_THAT(verification.message, HasSubstr("in float32, "));
}

TEST(VerifyTask, TheFirstLossInHalfPrecisionIsComparedWithThatInSingle) {
  Config row = small_row("single", "toy");
  const FirstLoss single = verify({.config = row}, {}).first_loss;
  row.dtype = "float16";
  const FirstLoss half = verify({.config = row}, {}).first_loss;
  EXPECT_EQ(half.value, single.value);
  EXPECT_GT(half.tolerance, single.tolerance);
}

TEST(MeasureTask, HasEveryStepAskedFor) {
  for (const std::string strategy : {"single", "model_parallel", "pipeline"}) {
    for (const std::string model : {"toy", "mlp"}) {
      SCOPED_TRACE(strategy + " of " + model);
      const Config row = small_row(strategy, model);
      const auto repetition = measured(row);
      ASSERT_THAT(repetition.step_ms, SizeIs(3));
      EXPECT_THAT(repetition.loss, SizeIs(3));
      EXPECT_THAT(repetition.devices, SizeIs(static_cast<std::size_t>(row.devices)));
      for (const double step : repetition.step_ms) EXPECT_GT(step, 0);
      ASSERT_THAT(repetition.per_rank_ms, SizeIs(1));
      EXPECT_THAT(repetition.per_rank_ms[0], Pointwise(DoubleNear(1e-5), repetition.step_ms));
      EXPECT_GT(repetition.flops_per_step, 0);
      EXPECT_FALSE(repetition.mfu.has_value()) << "no peak was given";
      expect_sound(repetition, mean(repetition.step_ms));
    }
  }
}

TEST(MeasureTask, TheTimelineIsTheSchedule) {
  const Config row = small_row("pipeline");
  const auto repetition = measured(row);
  std::vector<std::vector<schedules::Action>> expected = plan_of(row).schedule.actions;
  std::multiset<std::string> wanted;
  for (const auto& actions : expected) {
    for (const auto& action : actions) {
      wanted.insert(std::string(name(action.kind)) + std::to_string(action.stage) + "," +
                    std::to_string(action.micro_batch));
    }
  }
  std::multiset<std::string> found;
  double reached = 0;
  for (const auto& event : repetition.timeline) {
    found.insert(event.kind + std::to_string(event.stage) + "," +
                 std::to_string(event.micro_batch));
    EXPECT_LE(event.start_ms, event.end_ms);
    EXPECT_GE(event.start_ms, 0);
    reached = std::max(reached, event.end_ms);
  }
  auto sorted = repetition.step_ms;
  std::ranges::sort(sorted);
  EXPECT_NEAR(reached, sorted[1], 1e-9) << "of the median step";
  for (const std::string& action : found) EXPECT_TRUE(wanted.contains(action)) << action;
  // The last stage may have loaded targets while the step before was still running.
  std::vector<std::string> missing;
  std::ranges::set_difference(wanted, found, std::back_inserter(missing));
  const std::string load = std::string(name(schedules::ActionKind::copy_input)) + "1,";
  EXPECT_THAT(missing, Each(StartsWith(load)));
}

TEST(MeasureTask, UtilisationIsFlopsOverThePeakOfAllDevices) {
  const auto repetition =
      measure({.config = small_row("pipeline"), .peak_gflops = 2.0}, {}).repetitions.at(0);
  ASSERT_TRUE(repetition.mfu.has_value());
  const double seconds = reports::median(repetition.step_ms) / 1e3;
  EXPECT_NEAR(*repetition.mfu, repetition.flops_per_step / seconds / (2 * 2e9),
              1e-6 * *repetition.mfu);
}

TEST(MeasureTask, IsolatedSteps) {
  Config row = small_row("pipeline");
  row.protocol = "isolated";
  const auto repetition = measured(row);
  EXPECT_THAT(repetition.step_ms, SizeIs(3));
  expect_sound(repetition, mean(repetition.step_ms));
  EXPECT_EQ(repetition.timeline.size(), 2 * 3 * 4 + 2U) << "nothing of another step";
}

TEST(MeasureTask, InputsOnTheDeviceTrainTheModel) {
  Config row = small_row("pipeline", "mlp");
  row.inputs = "device";
  const auto device = measured(row);
  expect_sound(device, mean(device.step_ms));
  // One batch stays on the device, so its loss falls from step to step if the targets are right.
  EXPECT_LT(device.loss.back(), device.loss.front());
}

TEST(MeasureTask, TheTutorialsProtocolRepeatsWithNewModels) {
  Config row = small_row("pipeline");
  row.protocol = "tutorial";
  row.schedule = "gpipe";
  const MeasureResult result = measure({.config = row}, {});
  ASSERT_THAT(result.repetitions, SizeIs(2));
  std::vector<std::vector<double>> losses;
  int index = 0;
  for (const reports::Repetition& repetition : result.repetitions) {
    EXPECT_EQ(repetition.index, index++);
    EXPECT_THAT(repetition.loss, SizeIs(3));
    ASSERT_THAT(repetition.step_ms, SizeIs(3));
    const double call = std::accumulate(repetition.step_ms.begin(), repetition.step_ms.end(), 0.0);
    for (const auto& device : repetition.devices) {
      EXPECT_GT(device.breakdown_ms.compute, 0);
      EXPECT_NEAR(3 * sum_of(device.breakdown_ms), call, 1e-6 * call);
    }
    losses.push_back(repetition.loss);
  }
  EXPECT_EQ(losses[0], losses[1]) << "a new model each time, the same batches";
}

TEST(MeasureTask, TheFirstLossMustBeTheVerifiedOne) {
  const Config row = small_row("pipeline", "toy");
  FirstLoss loss = verify({.config = row}, {}).first_loss;
  EXPECT_NO_THROW(measure({.config = row, .first_loss = loss}, {}));
  loss.value *= 1.01;
  using Protocol = decltype(Config::protocol);
  for (const Protocol protocol : {Protocol("steady"), Protocol("tutorial")}) {
    Config other = row;
    other.protocol = protocol;
    try {
      measure({.config = other, .first_loss = loss}, {});
      ADD_FAILURE() << "accepted: " << protocol;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("the first step's loss is "));
    }
  }
}

TEST(MeasureTask, ATraceHoldsEveryStep) {
  const Config row = small_row("pipeline");
  const MeasureResult result = measure({.config = row, .trace = true}, {});
  std::size_t actions = 0;
  for (const auto& own : plan_of(row).schedule.actions) actions += own.size();
  EXPECT_THAT(result.trace, SizeIs(3 * actions));
}

TEST(MeasureTask, OneMoreStepShowsTheMemory) {
  for (const char* strategy : {"single", "pipeline", "data_parallel"}) {
    SCOPED_TRACE(strategy);
    const Config row = small_row(strategy, "mlp");
    EXPECT_TRUE(measured(row).memory_curve.empty()) << "not asked for";
    const MeasureResult result = measure({.config = row, .memory = true}, {});
    const reports::Repetition& launch = result.repetitions.at(0);
    EXPECT_THAT(launch.step_ms, SizeIs(3));
    ASSERT_THAT(launch.memory_curve, SizeIs(launch.devices.size()));
    for (const reports::DeviceRecord& device : launch.devices) {
      const auto& curve = launch.memory_curve.at(static_cast<std::size_t>(device.device));
      EXPECT_TRUE(std::ranges::is_sorted(curve.ms));
      EXPECT_THAT(curve.most_bytes, SizeIs(curve.ms.size()));
      EXPECT_THAT(curve.bytes.at("parameters"), SizeIs(curve.ms.size()));
      const std::int64_t most = std::ranges::max(curve.most_bytes);
      // A device frees its output when the other one has it: not always before the same action.
      const auto peak = static_cast<double>(device.peak_memory_bytes);
      EXPECT_NEAR(static_cast<double>(most) / peak, 1, 0.05);
    }
  }
}

TEST(CalibrateDevice, FindsPositiveRates) {
  const Config row = small_row("pipeline", "toy");
  const CalibrateDeviceResult rates = calibrate_device({.config = row}, {});
  reports::each_field(rates,
                      [](std::string_view name, double rate) { EXPECT_GT(rate, 0) << name; });
}

}  // namespace
}  // namespace stratagem::bench::tasks_test
