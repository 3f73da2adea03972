// Stages that follow one another on one device: each hands its tensors to the next as they lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/oracle/oracle.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/lowering.h"
#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/training.h"

namespace stratagem::stages::neighbours_test {
namespace {

constexpr auto F = schedules::ActionKind::forward;

/// A micro-batch passes all stages forwards, then all backwards, wherever they stand.
schedules::Schedule one_after_another(std::vector<int> device_of_stage, int micro_batches,
                                      bool split_backward) {
  schedules::Schedule compute{.name = "hand-made",
                              .micro_batches = micro_batches,
                              .split_backward = split_backward,
                              .device_of_stage = std::move(device_of_stage),
                              .actions = {}};
  compute.actions.resize(static_cast<std::size_t>(std::ranges::max(compute.device_of_stage)) + 1);
  const auto add = [&](schedules::ActionKind kind, int stage, int micro_batch) {
    const int device = compute.device_of_stage[static_cast<std::size_t>(stage)];
    compute.actions[static_cast<std::size_t>(device)].push_back({kind, stage, micro_batch});
  };
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    for (int stage = 0; stage < compute.stages(); ++stage) add(F, stage, micro_batch);
  }
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    for (int stage = compute.stages() - 1; stage >= 0; --stage) {
      add(compute.input_gradient_kind(), stage, micro_batch);
      if (split_backward) add(compute.weight_gradient_kind(), stage, micro_batch);
    }
  }
  schedules::Schedule lowered = schedules::lower(compute);
  schedules::validate(lowered);
  return lowered;
}

StagedStrategy placed(strategies::Training& training, const std::vector<int>& device_of_stage,
                      bool split_backward) {
  strategies::StrategyOptions options;
  options.cut =
      stages::choose_cut(training.workload, static_cast<int>(device_of_stage.size()), "flops");
  return {training.context(options), [device_of_stage, split_backward](std::int64_t samples) {
            auto partition = schedules::split_batch(samples, 2);
            const auto count = static_cast<int>(partition.size());
            const auto schedule = one_after_another(device_of_stage, count, split_backward);
            return StepPlan{.schedule = schedule,
                            .evaluation = schedules::forward_only(schedule),
                            .of_stages = schedule,
                            .partition = std::move(partition)};
          }};
}

// A V: the second device has the two in the middle, the first one both ends.
TEST(Neighbours, OnOneDeviceTrainAsOnTwo) {
  for (const char* model : {"mlp", "resnet18"}) {
    for (const bool split_backward : {false, true}) {
      SCOPED_TRACE(std::string(model) + (split_backward ? ", in two halves" : ""));
      const auto options = strategies::small_workload(model, 6);
      strategies::StateDictionary expected;
      for (const auto& device_of_stage :
           std::vector<std::vector<int>>{{0, 1, 2, 3}, {0, 1, 1, 0}, {0, 0, 1, 1}, {0, 0, 0, 0}}) {
        strategies::Training training(options, std::ranges::max(device_of_stage) + 1);
        StagedStrategy strategy = placed(training, device_of_stage, split_backward);
        const auto verified = bench::compare_with_oracle(strategy, training.workload);
        EXPECT_TRUE(verified.passed) << verified.message;
        const strategies::StateDictionary state = strategy.state();
        if (expected.empty()) expected = state;
        EXPECT_EQ(strategies::largest_difference(state, expected), 0);
      }
    }
  }
}

}  // namespace
}  // namespace stratagem::stages::neighbours_test
