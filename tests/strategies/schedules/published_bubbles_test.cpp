// Bubbles of the schedules beside published ones, without a fitted constant.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/simulate.h"
#include "strategies/schedules/zero_bubble_search.h"

namespace stratagem::schedules::published_bubbles_test {
namespace {

/// Times of a stage in ms (Table 9) and bubble rates (Table 5) of Qi et al. 2023, "Zero Bubble
/// Pipeline Parallelism": F, I and W are its F, B and W.
struct Published {
  const char* model;
  int devices;
  int micro_batches;
  double forward, input, weight, transfer;
  double of_1f1b, of_zb_h1, of_zb_h2, of_zb_1p, of_zb_2p;
};

constexpr Published table[] = {
    {"1.5B", 8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083, 0.1585, 0.0433},
    {"1.5B", 8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0837, 0.1242, 0.0039},
    {"1.5B", 8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444, 0.0674, 0.0026},
    {"6.2B", 8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698, 0.1323, 0.0029},
    {"6.2B", 8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0559, 0.1045, 0.0022},
    {"6.2B", 8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294, 0.0554, 0.0010},
    {"14.6B", 16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0672, 0.1397, 0.0066},
    {"14.6B", 16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088, 0.0516, 0.1088, 0.0054},
    {"14.6B", 16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576, 0.0266, 0.0576, 0.0028},
    {"28.3B", 32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0641, 0.1421, 0.0038},
    {"28.3B", 32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106, 0.0490, 0.1106, 0.0029},
    {"28.3B", 32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594, 0.0257, 0.0594, 0.0018}};

/// Returns the idle fraction of the device that takes longest from its first action to its last.
double bubble_of(const Schedule& lowered, const Published& of) {
  const auto cost = [&of](const Action& action) -> Cost {
    switch (action.kind) {
      case ActionKind::forward:
        return of.forward;
      case ActionKind::backward:
        return of.input + of.weight;
      case ActionKind::backward_input:
        return of.input;
      case ActionKind::backward_weight:
        return of.weight;
      case ActionKind::copy_activation:
      case ActionKind::copy_gradient:
        return of.transfer;
      default:
        return 0.0;
    }
  };
  const Timeline timeline = simulate(lowered, cost, {.separate_copy_stream = true});
  double longest = 0;
  for (int device = 0; device < of.devices; ++device) {
    double begin = timeline.step_ms;
    double end = 0;
    for (const TimelineEntry& entry : timeline.of_device(device)) {
      if (!is_pass(entry.action.kind)) continue;
      begin = std::min(begin, entry.start_ms);
      end = std::max(end, entry.end_ms);
    }
    longest = std::max(longest, end - begin);
  }
  return 1 - of.micro_batches * (of.forward + of.input + of.weight) / longest;
}

double bubble_of(const std::string& name, const Published& of) {
  return bubble_of(make_schedule(name, of.devices, of.micro_batches), of);
}

TEST(PublishedBubbles, AreThoseOfTheZeroBubblePaperToFourDecimals) {
  constexpr double rounding = 0.5e-4 + 1e-9;
  for (const Published& of : table) {
    SCOPED_TRACE(testing::Message() << of.model << ", " << of.micro_batches << " micro-batches");
    EXPECT_NEAR(bubble_of("1f1b", of), of.of_1f1b, rounding);
    EXPECT_NEAR(bubble_of("zb_h1", of), of.of_zb_h1, rounding);
    EXPECT_NEAR(bubble_of("zb_h2", of), of.of_zb_h2, rounding);
  }
}

/// The activations that W needs, as a part of a micro-batch's: 32 h of (34 + 5 a s / h) h bytes a
/// token (section 2.3), with h / a of Table 3 and s of 1024.
double weight_share(const Published& of) {
  const double head = std::string(of.model) == "1.5B" ? 96 : 128;
  return 32 / (34 + 5 * 1024 / head);
}

/// Returns the bubble that a search finds with room for `live_limit` micro-batches on a device.
double searched_bubble(const Published& of, int live_limit) {
  const PassTimes times{of.forward, of.input, of.weight, of.transfer};
  const Schedule lowered = lower(
      zero_bubble_search({of.devices, of.micro_batches}, times, live_limit, weight_share(of)));
  validate(lowered);
  return bubble_of(lowered, of);
}

TEST(PublishedBubbles, ASearchReachesThoseOfZb1pAndZb2p) {
  constexpr double margin = 0.005;
  int as_published = 0;
  for (const Published& of : table) {
    SCOPED_TRACE(testing::Message() << of.model << ", " << of.micro_batches << " micro-batches");
    const double with_one = searched_bubble(of, of.devices);
    const double with_two = searched_bubble(of, 2 * of.devices);
    EXPECT_LE(with_one, of.of_zb_1p + margin);
    EXPECT_LE(with_two, of.of_zb_2p + margin);
    constexpr double rounding = 1.5e-4;
    if (with_one <= of.of_zb_1p + rounding && with_two <= of.of_zb_2p + rounding) ++as_published;
  }
  EXPECT_GE(as_published, 11);
}

/// Returns the idle time of the busiest device, in passes of equal length.
double idle_passes(const std::string& name, const ScheduleSize& size) {
  const double bubble = find_schedule(name).ideal_bubble(size);
  const double passes = 3.0 * size.stages_per_device * size.micro_batches;
  return passes * bubble / (1 - bubble);
}

TEST(PublishedBubbles, ThoseOfVShapesAreFractionsOfThatOf1f1b) {
  for (int devices = 2; devices <= 16; ++devices) {
    for (const int micro_batches : {devices, 2 * devices, 3 * devices + 1}) {
      SCOPED_TRACE(testing::Message() << devices << " devices, " << micro_batches);
      const ScheduleSize size{devices, micro_batches, 2};
      const double of_1f1b = 6.0 * (devices - 1);  // in passes of half stages
      EXPECT_NEAR(idle_passes("v_min", size), of_1f1b * 2 / 3 - (devices % 3 == 0 ? 0 : 1), 1e-6);
      EXPECT_NEAR(idle_passes("v_half", size), of_1f1b / 2 - (devices % 2 == 0 ? 1 : 0), 1e-6);
      if (micro_batches < 2 * devices) continue;
      EXPECT_NEAR(idle_passes("dual_pipe_v", size), devices - 1, 1e-6);
    }
  }
}

TEST(PublishedBubbles, VShapesHoldFractionsOfTheActivationsOf1f1b) {
  const auto most_held = [](const std::string& name, int devices) {
    const auto held = peak_live_micro_batches(make_schedule(name, devices, 4 * devices));
    return *std::ranges::max_element(held);
  };
  for (int devices = 2; devices <= 24; ++devices) {
    SCOPED_TRACE(testing::Message() << devices << " devices");
    // Half stages; 1f1b holds 2 p of them.
    EXPECT_LE(most_held("v_min", devices), 2.0 * devices / 3 + 8.0 / 3);
    EXPECT_LE(most_held("v_half", devices), devices + 3);
    EXPECT_EQ(most_held("dual_pipe_v", devices), 2 * devices + 1);
  }
}

TEST(PublishedBubbles, InterleavingDividesThemByTheStagesOfADevice) {
  for (const int devices : {2, 4, 8}) {
    for (const int each : {2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << devices << " devices of " << each << " stages");
      const ScheduleSize size{devices, 2 * devices, each};
      EXPECT_NEAR(idle_passes("looped_bfs", size), 3 * (devices - 1), 1e-6);
      EXPECT_NEAR(idle_passes("interleaved_zero_bubble", size), devices - 1, 1e-6);
    }
  }
}

}  // namespace
}  // namespace stratagem::schedules::published_bubbles_test
