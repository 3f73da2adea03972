// Memory of the schedules beside published figures, by formulas without a fitted constant.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules::published_memory_test {
namespace {

/// Setups (Table 3), times of a stage in ms (Table 9, fewest micro-batches) and memory of the
/// fullest device in GB (Table 4, equal for all numbers of micro-batches) of Qi et al. 2023, "Zero
/// Bubble Pipeline Parallelism". An 80 GB device has 80 GiB, so a GB is a GiB here.
struct Published {
  const char* model;
  int devices, micro_batches;
  int layers;  // of a device between the first and the last, which have one less (section 5.1)
  int heads, hidden, samples;
  PassTimes times;
  double of_1f1b, of_interleaved, of_zb_1p, of_zb_2p;
};

constexpr std::array<Published, 4> table = {
    {{"1.5B", 8, 24, 3, 24, 2304, 6, {18.522, 18.086, 9.337, 0.601}, 30, 40, 32, 59},
     {"6.2B", 8, 24, 4, 32, 4096, 3, {29.718, 29.444, 19.927, 0.527}, 39, 48, 42, 70},
     {"14.6B", 16, 48, 3, 40, 5120, 1, {11.347, 11.248, 8.132, 0.377}, 32, 39, 33, 51},
     {"28.3B", 32, 96, 2, 48, 6144, 1, {10.419, 10.207, 7.715, 0.408}, 43, 58, 44, 74}}};

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
constexpr double sequence = 1024;
/// The paper names no vocabulary; this is that of GPT-2, padded as in Megatron-LM.
constexpr double vocabulary = 50'304;

/// A stage's share of memory in bytes.
struct StageBytes {
  double state = 0;   // parameters, gradients and optimizer
  double layers = 0;  // activations of a micro-batch, from F to W
  double logits = 0;  // activations of a micro-batch, from F to I
};

/// Mixed precision with Adam in Megatron-LM takes 18 bytes a parameter (Megatron-LM,
/// theoretical_memory_usage): 2 for the weight, 4 for the gradient, 12 for its copy and moments. A
/// layer has 12 h^2 parameters (Narayanan et al. 2021, equation 2 without its small terms) and
/// keeps s b (34 h + 5 a s) bytes (Korthikanti et al. 2022, equation 1; Qi et al., Table 1). A mask
/// of the embedding's dropout and 4 s b (h + v) bytes at the logits are extra (Korthikanti et al.,
/// section 4.3).
StageBytes bytes_of_stage(const Published& of, int stage, int stages) {
  constexpr double of_parameter = 18;
  const double hidden = of.hidden;
  const double tokens = sequence * of.samples;
  const bool is_first = stage == 0;
  const bool is_last = stage == stages - 1;
  const int layers = of.layers * of.devices / stages - (is_first || is_last ? 1 : 0);
  StageBytes bytes;
  bytes.state = of_parameter * layers * 12 * hidden * hidden;
  bytes.layers = layers * tokens * (34 * hidden + 5 * of.heads * sequence);
  if (is_first || is_last) bytes.state += of_parameter * vocabulary * hidden;
  if (is_first) bytes.layers += tokens * hidden;
  if (is_last) bytes.logits = 4 * tokens * (hidden + vocabulary);
  return bytes;
}

/// Returns the most bytes that a device holds at once in a step.
double peak_bytes(const Schedule& schedule, int device, const Published& of) {
  double held = 0;
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    const bool is_here = schedule.device_of_stage[static_cast<std::size_t>(stage)] == device;
    if (is_here) held += bytes_of_stage(of, stage, schedule.stages()).state;
  }
  double peak = held;
  for (const Action& action : schedule.actions[static_cast<std::size_t>(device)]) {
    const StageBytes bytes = bytes_of_stage(of, action.stage, schedule.stages());
    if (action.kind == ActionKind::forward) held += bytes.layers + bytes.logits;
    peak = std::max(peak, held);
    if (action.kind == schedule.input_gradient_kind()) held -= bytes.logits;
    if (action.kind == schedule.weight_gradient_kind()) held -= bytes.layers;
  }
  return peak;
}

/// Returns the relative error of the fullest device's memory.
double error_of(const Schedule& schedule, const Published& of, double published) {
  std::vector<double> peaks;
  for (int device = 0; device < of.devices; ++device) {
    peaks.push_back(peak_bytes(schedule, device, of) / gibibyte);
  }
  const auto fullest = std::ranges::max_element(peaks);
  const double error = *fullest / published - 1;
  const std::string cell = std::string(of.model) + " " + schedule.name;
  // The vocabulary has no effect, because neither the first nor the last device is the fullest.
  EXPECT_EQ(fullest - peaks.begin(), 1) << cell;
  EXPECT_LE(std::abs(error), 0.1) << cell << ": " << *fullest << " GiB";
  return error;
}

/// Returns the order that is found for a limit of micro-batches held.
Schedule searched(const Published& of, int live_limit) {
  return make_schedule("zb_auto", {.devices = of.devices,
                                   .micro_batches = of.micro_batches,
                                   .pass_times = of.times,
                                   .live_limit = live_limit});
}

/// Every layer is a stage (section 5.1); the embedding and the logits count as one each.
Schedule interleaved(const Published& of) {
  return make_schedule("interleaved_1f1b", {of.devices, of.micro_batches, of.layers});
}

TEST(PublishedMemory, IsThatOfTheZeroBubblePaperWithinTenPercent) {
  std::vector<double> errors;
  for (const Published& of : table) {
    const Schedule of_1f1b = make_schedule("1f1b", of.devices, of.micro_batches);
    errors.push_back(error_of(of_1f1b, of, of.of_1f1b));
    errors.push_back(error_of(interleaved(of), of, of.of_interleaved));
    errors.push_back(error_of(searched(of, of.devices), of, of.of_zb_1p));
    errors.push_back(error_of(searched(of, 2 * of.devices), of, of.of_zb_2p));
  }
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  EXPECT_EQ(errors.size(), 16U);
  EXPECT_LE(sum / static_cast<double>(errors.size()), 0.04);
}

/// Narayanan et al. 2021 for the first two (section 2.2); Qi et al., Table 2 and section 5.1, for
/// the others.
TEST(PublishedMemory, NumbersOfMicroBatchesHeldAreThoseOfThePapers) {
  const auto most_held = [](const Schedule& schedule) {
    const auto held = peak_live_micro_batches(schedule);
    return *std::ranges::max_element(held);
  };
  for (const Published& of : table) {
    SCOPED_TRACE(of.model);
    const auto most_of = [&](const char* name) {
      return most_held(make_schedule(name, of.devices, of.micro_batches));
    };
    EXPECT_EQ(most_of("1f1b"), of.devices);
    EXPECT_EQ(most_held(interleaved(of)), of.devices * of.layers + of.devices - 1);
    EXPECT_EQ(most_of("zb_h1"), of.devices);
    EXPECT_EQ(most_of("zb_h2"), 2 * of.devices - 1);
    EXPECT_EQ(most_held(searched(of, of.devices)), of.devices);
    EXPECT_EQ(most_held(searched(of, 2 * of.devices)), 2 * of.devices);
  }
}

}  // namespace
}  // namespace stratagem::schedules::published_memory_test
