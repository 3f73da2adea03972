// A block of sharded layers: what it communicates, and what it keeps for its backward pass.
#include "strategies/tensor_parallel/shard.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>

#include "models/workload.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/tensor_parallel/tensor_rank.h"

namespace stratagem::tensor_parallel::shard_test {
namespace {

/// A transformer block, sharded.
ShardedLayers sharded_block(Rank& rank, Layout layout) {
  const models::Workload workload({.model = "gpt-tiny", .loss = models::Loss::cross_entropy});
  models::Model model = workload.make_meta_model();
  models::LayerList block;
  block.push_back(std::move(model.layers[1]));
  return shard(workload, std::move(block), *rank.group, layout, false);
}

TEST(Shard, ABlockCommunicatesTwiceInEachDirection) {
  runtime::on_ranks(2, [](distributed::RankContext& ranks) {
    for (const bool keep_gathered : {false, true}) {
      Rank rank(ranks, {.keep_gathered = keep_gathered});
      for (const Layout layout : {Layout::tensor, Layout::sequence}) {
        Communication calls;
        for (const ParallelLayer* layer : sharded_block(rank, layout).parallel) {
          for (const auto& [name, cost] : layer->communication({96, 4, true})) {
            calls[name].calls += cost.calls;
            calls[name].payload_bytes += cost.payload_bytes;
          }
        }
        constexpr std::int64_t activations = 96 * 64 * 4;
        if (layout == Layout::tensor) {
          EXPECT_EQ(calls.size(), 1U);
          EXPECT_EQ(calls["all_reduce"].calls, 4);
          EXPECT_EQ(calls["all_reduce"].payload_bytes, 4 * activations);
        } else {
          const int gathers = keep_gathered ? 4 : 6;  // the two inputs are gathered again
          EXPECT_EQ(calls.size(), 2U);
          EXPECT_EQ(calls["reduce_scatter"].calls, 4);
          EXPECT_EQ(calls["reduce_scatter"].payload_bytes, 4 * activations);
          EXPECT_EQ(calls["all_gather"].calls, gathers);
          EXPECT_EQ(calls["all_gather"].payload_bytes, gathers * activations / 2);
        }
      }
    }
    Rank rank(ranks);
    const models::Workload resnet({.model = "resnet18"});
    EXPECT_THROW(shard(resnet, resnet.make_meta_model().layers, *rank.group, Layout::tensor, true),
                 std::invalid_argument);
  });
}

constexpr std::int64_t samples = 4;
constexpr std::int64_t positions = 32;
constexpr std::int64_t features = 64;

/// What a rank's part of a block keeps of its forward pass, with the output.
std::int64_t bytes_kept_by_a_block(distributed::RankContext& ranks, Layout layout,
                                   bool keep_gathered) {
  Rank rank(ranks, {.keep_gathered = keep_gathered});
  const ShardedLayers block = sharded_block(rank, layout);
  block.layers[0]->materialise(/*seed=*/1, at::kCPU, at::kFloat, at::MemoryFormat::Contiguous);
  const at::Tensor x = at::randn({samples, positions, features});
  const at::Tensor own =
      layout == Layout::sequence ? rank.group->own_part(x, sequence_dimension).contiguous() : x;
  const at::Tensor input = own.detach().requires_grad_(true);
  const backends::MemoryAccount account = 10 + rank.group->rank();
  backends::use_account(account);
  const std::int64_t before = backends::settled_bytes(account);
  const at::Tensor y = block.layers[0]->forward(input);
  return backends::settled_bytes(account) - before;
}

// Korthikanti et al. 2022, section 4.2: by sequence the block's output, both normalised inputs and
// the sum between its parts are a part each, where tensor parallelism has them whole.
TEST(Shard, BySequenceABlockKeepsPartsOfWhatItGathered) {
  std::array<std::int64_t, 2> tensor{};
  std::array<std::int64_t, 2> sequence{};
  std::array<std::int64_t, 2> gathered{};
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.info().rank);
    tensor[rank] = bytes_kept_by_a_block(ranks, Layout::tensor, false);
    sequence[rank] = bytes_kept_by_a_block(ranks, Layout::sequence, false);
    gathered[rank] = bytes_kept_by_a_block(ranks, Layout::sequence, true);
  });
  constexpr std::int64_t half = samples * positions * features * 4 / 2;
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_GE(tensor[rank] - sequence[rank], 4 * half);
    EXPECT_EQ(gathered[rank] - sequence[rank], 2 * half);
  }
}

}  // namespace
}  // namespace stratagem::tensor_parallel::shard_test
