#include "strategies/distributed/state_reader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/state_pieces.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::distributed::state_reader_test {
namespace {

using strategies::RankTraining;
using strategies::Spread;
using strategies::StateDictionary;
using strategies::StatePieces;

struct Case {
  std::string strategy;
  Spread spread = {};
  strategies::StrategyOptions options = {};
  std::string model = "gpt-tiny";
  std::optional<at::ScalarType> mixed = {};
};

std::ostream& operator<<(std::ostream& stream, const Case& of) {
  return stream << of.strategy << " of " << of.model << ", " << of.spread.replicas << "x"
                << of.spread.pipeline_ranks << "x" << of.spread.tensor_ranks << " ranks of "
                << of.spread.devices_per_rank << " devices, " << of.spread.shard_groups
                << " groups of replicas" << (of.mixed ? ", mixed" : "");
}

models::WorkloadOptions workload_of(const Case& of) {
  models::WorkloadOptions options = strategies::small_workload(of.model, 8);
  options.optimizer = {.kind = models::OptimizerOptions::Kind::adamw, .learning_rate = 0.01};
  if (!of.mixed) return options;
  options.mixed = true;
  options.dtype = *of.mixed;
  options.loss_scale = 1024;
  options.dynamic_loss_scale = true;
  return options;
}

/// Runs `work` on each rank once it has trained a step.
template <class Work>
void on_each_rank(const Case& of, const Work& work) {
  const models::WorkloadOptions options = workload_of(of);
  Spread spread = of.spread;
  spread.sharded = of.strategy.starts_with("zero") || of.options.shard != "none";
  runtime::on_ranks(spread.ranks(), [&](RankContext& ranks) {
    RankTraining training(ranks, options, spread);
    training.strategy =
        strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
    training.strategy->step(training.workload.make_batch(0));
    work(training);
  });
}

/// On rank 0: what it reads of all.
StateDictionary read_all(strategies::Strategy& strategy, ProcessGroup& ranks,
                         bool with_gradients = false) {
  StatePieces own = strategy.own_state(with_gradients);
  StateDictionary whole;
  if (ranks.rank() != 0) {
    send_state(own, ranks, at::kCPU);
    return whole;
  }
  StateReader reader(std::move(own), &ranks, at::kCPU);
  for (const auto& [name, form] : reader.entries()) {
    whole[name] = reader.read(name);
    EXPECT_EQ(whole[name].sizes(), form.sizes()) << name;
    EXPECT_TRUE(whole[name].is_contiguous()) << name;
  }
  return whole;
}

void expect_state_is_read(const Case& of) {
  SCOPED_TRACE(testing::Message() << of);
  on_each_rank(of, [&](RankTraining& training) {
    const StateDictionary expected = training.strategy->state();
    const StateDictionary found = read_all(*training.strategy, *training.all, true);
    if (training.rank != 0) return;
    for (const auto& piece : training.strategy->own_state(false)) {
      EXPECT_FALSE(piece.name.starts_with("gradient.")) << piece.name;
    }
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_EQ(found.at(name).scalar_type(), tensor.scalar_type()) << name;
      EXPECT_TRUE(found.at(name).equal(tensor)) << name;
    }
  });
}

TEST(StateReader, ReadsTheStateOfEveryStrategyOnEveryMesh) {
  for (const Case& of : std::vector<Case>{
           {"single", {}, {}, "resnet18"},
           {"data_parallel", {.devices_per_rank = 2}, {}, "resnet18"},
           {"model_parallel", {.pipeline_ranks = 2}, {}, "resnet18"},
           {"pipeline", {.pipeline_ranks = 2}, {.split_size = 3}, "resnet18"},
           {"pipeline", {.pipeline_ranks = 2}, {.split_size = 3, .schedule = "zb_v"}},
           {"ddp", {.replicas = 2}, {}, "resnet18"},
           {"ddp_model_parallel", {.replicas = 2, .pipeline_ranks = 2}, {.split_size = 3}},
           {"tensor_parallel", {.tensor_ranks = 2}},
           {"tensor_parallel", {.replicas = 2, .tensor_ranks = 2}},
           {"sequence_parallel",
            {.pipeline_ranks = 2, .tensor_ranks = 2},
            {.split_size = 3, .schedule = "zb_h1"}},
           {"tensor_parallel", {.tensor_ranks = 4}, {}, "llama-tiny"},  // copies of heads
           {"tensor_parallel",
            {.replicas = 2, .tensor_ranks = 4},
            {.shard = "parameters"},
            "llama-tiny"},
           {"zero1", {.replicas = 2}, {}, "resnet18"},
           {"zero2", {.replicas = 4, .shard_groups = 2}},
           {"zero3", {.replicas = 3}, {}, "resnet18"},
           {"zero3", {.replicas = 2, .pipeline_ranks = 2}, {.split_size = 3, .schedule = "1f1b"}},
           {"tensor_parallel", {.replicas = 2, .tensor_ranks = 2}, {.shard = "parameters"}},
           {"ddp", {.replicas = 2}, {}, "resnet18", at::kBFloat16},
           {"zero1", {.replicas = 4, .shard_groups = 2}, {}, "gpt-tiny", at::kHalf},
           {"zero3", {.replicas = 2}, {}, "gpt-tiny", at::kHalf}}) {
    expect_state_is_read(of);
  }
}

TEST(StateReader, ReadsItOverABackendThatBehavesAsNcclDoes) {
  expect_state_is_read({"zero3", {.replicas = 2, .pipeline_ranks = 2, .in_order = true}});
  expect_state_is_read({"tensor_parallel", {.replicas = 2, .tensor_ranks = 2, .in_order = true}});
}

/// Of what this thread allocates while it works.
template <class Work>
std::int64_t peak_of(const Work& work) {
  const backends::MemoryAccount account = backends::memory_accounts - 1;
  const backends::MemoryAccountGuard charged(account);
  backends::reset_peak_of(account);
  const std::int64_t before = backends::memory_of(account).current_bytes;
  work();
  return backends::memory_of(account).peak_bytes - before;
}

// A checkpoint's state was once gathered on every rank.
TEST(StateReader, ARankThatSendsItsStateAllocatesNothingForIt) {
  constexpr std::int64_t messages = 4 * 1024;  // numbers
  for (const Case& of :
       std::vector<Case>{{"zero3", {.replicas = 2}, {}, "resnet18"},
                         {"pipeline", {.pipeline_ranks = 2}, {.split_size = 3}, "resnet18"}}) {
    SCOPED_TRACE(testing::Message() << of);
    on_each_rank(of, [&](RankTraining& training) {
      std::int64_t state = 0;
      for (const auto& piece : training.strategy->own_state(false)) {
        state += static_cast<std::int64_t>(piece.values.nbytes());
      }
      EXPECT_GT(state, 100 * messages);
      if (training.rank == 0) {
        read_all(*training.strategy, *training.all);
        return;
      }
      EXPECT_LT(peak_of([&] { read_all(*training.strategy, *training.all); }), messages);
    });
  }
}

TEST(StateReader, NoTimeLimitOfTheOthersEndsWhatTheFirstRankDoesWithAnEntry) {
  constexpr std::chrono::milliseconds limit(2000);
  runtime::on_ranks(3, [&](RankContext& ranks) {
    const backends::DeviceGroup device = strategies::unpinned_devices(1);
    const auto group =
        ranks.make_group("all", {0, 1, 2}, "gloo", *device.devices[0], {.timeout = limit});
    const std::string own = std::to_string(group->rank());
    StatePieces pieces = {piece_of(own, at::full({3}, group->rank()))};
    if (group->rank() != 0) return send_state(pieces, *group, at::kCPU);
    StateReader reader(std::move(pieces), group.get(), at::kCPU);
    std::this_thread::sleep_for(limit + limit / 4);
    for (const char* name : {"0", "1", "2"}) {
      EXPECT_TRUE(reader.read(name).equal(at::full({3}, std::stoi(name))));
    }
  });
}

TEST(StateReader, AnEntryOfWhichElementsAreMissingIsAnError) {
  StateReader reader({run_of("half", at::empty({2, 3}), at::ones({4}), 0)}, nullptr, at::kCPU);
  EXPECT_EQ(reader.entries().at("half").sizes(), at::IntArrayRef({2, 3}));
  EXPECT_THROW(reader.read("half"), std::logic_error);
  EXPECT_THROW(reader.read("none"), std::out_of_range);
}

TEST(StateReader, ATensorOfAnyDenseOrderIsReadAsItIs) {
  const at::Tensor tensor =
      at::arange(48).view({2, 3, 4, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const at::Tensor& each : {tensor, tensor.narrow(1, 0, 2), tensor.select(0, 1)}) {
    StateReader reader({piece_of("it", each)}, nullptr, at::kCPU);
    EXPECT_TRUE(reader.read("it").equal(each));
    EXPECT_TRUE(reader.read("it").is_contiguous());
    EXPECT_EQ(reader.is_row_major("it"),
              each.is_contiguous() || !each.is_non_overlapping_and_dense());
  }
}

}  // namespace
}  // namespace stratagem::distributed::state_reader_test
