#include "bench/predict/group_cost_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "strategies/schedules/registry.h"
#include "tests/bench/predict/executed.h"

namespace stratagem::bench::group_cost_table_test {
namespace {

using schedules::Action;
using schedules::ActionKind;

constexpr Action forward_0{ActionKind::forward, 0, 0};
constexpr Action forward_1{ActionKind::forward, 0, 1};
constexpr Action update{ActionKind::optimizer, 0, 0};

/// Of one group with micro-batches of 4 and 3 samples.
GroupCostTable table() {
  return GroupCostTable(GroupCostKeys(schedules::make_schedule("naive", 1, 2), {4, 3}));
}

const ActionCost& cost_of(const std::vector<ActionCost>& costs, const std::string& kind,
                          std::int64_t samples) {
  for (const ActionCost& cost : costs) {
    if (cost.kind == kind && cost.samples == samples) return cost;
  }
  throw std::invalid_argument("no cost for " + kind);
}

TEST(GroupCostTable, AnActionCostsTheMeanOfItsTimesWithoutFarOnes) {
  GroupCostTable found = table();
  for (const double ms : {8.0, 16.0, 10.0, 12.0, 100.0}) {
    found.add({executed(forward_0, 0, ms), executed(forward_1, ms, ms + 7),
               executed(update, ms + 7, ms + 9)});
  }
  const auto costs = found.costs();
  ASSERT_EQ(costs.size(), 3U);
  const ActionCost& first = cost_of(costs, "forward", 4);
  EXPECT_DOUBLE_EQ(first.ms, 11.5);
  EXPECT_DOUBLE_EQ(first.spread.low, 10 / 11.5);
  EXPECT_DOUBLE_EQ(first.spread.high, 16 / 11.5);
  EXPECT_LT(first.alone_ms, 0) << "one cost, whoever else computes";
  EXPECT_TRUE(first.first);
  const ActionCost& second = cost_of(costs, "forward", 3);
  EXPECT_DOUBLE_EQ(second.ms, 7);
  EXPECT_DOUBLE_EQ(second.spread.low, 1);
  EXPECT_FALSE(second.first);
  EXPECT_DOUBLE_EQ(cost_of(costs, "optimizer", 0).ms, 2);
}

TEST(GroupCostTable, TransfersInFlightAreTheLinks) {
  GroupCostTable found = table();
  found.add({executed({ActionKind::gather_transfer, 0, 0}, 0, 5),
             executed({ActionKind::scatter_transfer, 0, 0}, 0, 5)});
  EXPECT_TRUE(found.costs().empty());
}

TEST(GroupCostTable, MemoryIsThatOfTheActionBetweenTwoMarks) {
  GroupCostTable found = table();
  found.add({executed(forward_0, 0, 1), executed(forward_1, 1, 2)});
  const auto held = [](std::int64_t parameters, std::int64_t activations) {
    return BytesByPurpose{{"parameters", parameters}, {"activations", activations}};
  };
  found.add(std::vector<MemoryMark>{{.action = forward_0, .held = held(80, 20), .peak = 900},
                                    {.action = forward_1, .held = held(80, 70), .peak = 180},
                                    {.action = {}, .held = {{"parameters", 80}}, .peak = 155}});
  const std::vector<ActionMemory> memory = found.memory();
  ASSERT_EQ(memory.size(), 2U);
  const ActionMemory& first = memory[memory[0].samples == 4 ? 0 : 1];
  const ActionMemory& second = memory[memory[0].samples == 4 ? 1 : 0];
  EXPECT_EQ(first.kept, (BytesByPurpose{{"activations", 50}}));
  EXPECT_EQ(first.most_bytes, 80);
  EXPECT_EQ(second.kept, (BytesByPurpose{{"activations", -70}}));
  EXPECT_EQ(second.most_bytes, 5);
}

TEST(GroupCostTable, MemoryThatAnotherThreadFreesLateChangesNothing) {
  GroupCostTable found(GroupCostKeys(schedules::make_schedule("gpipe", 1, 4), {4, 4, 4, 4}));
  const auto held = [](std::int64_t bytes) { return BytesByPurpose{{"activations", bytes}}; };
  const auto forward = [](int micro_batch) { return Action{ActionKind::forward, 0, micro_batch}; };
  // During the last pass, 50 bytes of an earlier one are freed.
  found.add(std::vector<MemoryMark>{{.action = forward(0), .held = held(0), .peak = 0},
                                    {.action = forward(1), .held = held(50), .peak = 60},
                                    {.action = forward(2), .held = held(100), .peak = 110},
                                    {.action = forward(3), .held = held(150), .peak = 160},
                                    {.action = {}, .held = held(150), .peak = 155}});
  for (const ActionMemory& each : found.memory()) {
    EXPECT_EQ(each.kept, held(50));
    EXPECT_EQ(each.most_bytes, 60);
  }
}

TEST(MemoryCurve, LeavesOutMomentsThatChangeNothing) {
  const BytesByPurpose few = {{"parameters", 1}};
  const BytesByPurpose more = {{"parameters", 1}, {"activations", 2}};
  const reports::MemoryCurve curve =
      curve_of(1, 3, {{0, few, 1}, {1, few, 9}, {2.0009, more, 3}, {3, more, 4}});
  EXPECT_EQ(curve.rank, 1);
  EXPECT_EQ(curve.device, 3);
  EXPECT_EQ(curve.ms, (std::vector<double>{0, 2.001, 3}));
  EXPECT_EQ(curve.most_bytes, (std::vector<std::int64_t>{9, 3, 4}));
  EXPECT_EQ(curve.bytes.at("parameters"), (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_EQ(curve.bytes.at("activations"), (std::vector<std::int64_t>{0, 2, 2}));
}

}  // namespace
}  // namespace stratagem::bench::group_cost_table_test
