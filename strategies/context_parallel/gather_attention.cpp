// Attention with the keys and values of all ranks, gathered at once while the own block is computed
// (Llama 3 Team 2024, "The Llama 3 Herd of Models", section 3.3.2). The backward pass gathers them
// again, unless they are kept, and reduce-scatters their gradients.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/context_parallel/attention_form.h"
#include "strategies/context_parallel/whole_attention.h"

namespace stratagem::context_parallel {
namespace {

/// A block with the own keys of several ranks, one after another.
struct GatheredBlock {
  Block block;
  std::vector<std::pair<int, Run>> sources;
};

/// Returns the blocks with other ranks' keys. The blocks without a mask that have the same queries
/// are one.
std::vector<GatheredBlock> other_blocks(const SharedPositions& shared, std::int64_t own) {
  const int rank = shared.group.rank();
  std::vector<GatheredBlock> all;
  std::map<std::int64_t, std::size_t> unmasked;  // by the first query
  for (int source = 0; source < shared.group.size(); ++source) {
    if (source == rank) continue;
    for (const Block& block : blocks_of(shared.order, rank, source, own)) {
      const auto [found, is_new] = unmasked.emplace(block.queries.start, all.size());
      if (is_new || block.causal) {
        all.push_back({block, {{source, block.keys}}});
        all.back().block.keys.start = 0;
        continue;
      }
      all[found->second].block.keys.count += block.keys.count;
      all[found->second].sources.emplace_back(source, block.keys);
    }
  }
  return all;
}

constexpr std::int64_t key_dimension = 2;  // of [2, n, positions, heads, features of a head]

/// Returns views of the parts of a gathered tensor, [ranks, 2, n, own, ...].
std::vector<at::Tensor> parts_of(const at::Tensor& gathered, const GatheredBlock& block) {
  std::vector<at::Tensor> parts;
  for (const auto& [source, keys] : block.sources) {
    parts.push_back(gathered[source].narrow(key_dimension, keys.start, keys.count));
  }
  return parts;
}

Exchange gather_of(layer_exchange::ExchangeGroup& group, const at::Tensor& keys) {
  return {group, group.all_gather(keys.unsqueeze(0), 0)};
}

Block own_block(const SharedPositions& shared, std::int64_t own) {
  const int rank = shared.group.rank();
  return blocks_of(shared.order, rank, rank, own).front();
}

ForwardResult attention_of_gathered(const at::Tensor& qkv, const GroupedHeads& heads,
                                    const SharedPositions& shared) {
  const std::int64_t own = qkv.size(1);
  const at::Tensor keys = keys_and_values_of(qkv, heads);
  Exchange gather = gather_of(shared.group, keys);
  AttentionSum sum(qkv, heads);
  sum.add(own_block(shared, own), keys);
  const at::Tensor gathered = gather.wait();
  for (const GatheredBlock& each : other_blocks(shared, own)) {
    sum.add(each.block, at::cat(parts_of(gathered, each), key_dimension));
  }
  return {.whole = sum.whole(),
          .gathered = shared.group.options().keep_gathered ? gathered : at::Tensor()};
}

at::Tensor gradient_of_gathered(const SavedAttention& saved, const at::Tensor& output_gradient,
                                const SharedPositions& shared) {
  const std::int64_t own = saved.qkv.size(1);
  const at::Tensor keys = keys_and_values_of(saved.qkv, saved.heads);
  std::optional<Exchange> gather;
  if (!saved.gathered.defined()) gather = gather_of(shared.group, keys);
  std::vector<std::int64_t> sizes = keys.sizes().vec();
  sizes.insert(sizes.begin(), shared.group.size());
  const at::Tensor sums =
      at::zeros(sizes, keys.options().dtype(at::toOpMathType(keys.scalar_type())));
  AttentionGradients gradients(saved, output_gradient);
  gradients.add(own_block(shared, own), keys, sums[shared.group.rank()]);
  const at::Tensor gathered = gather ? gather->wait() : saved.gathered;
  for (const GatheredBlock& each : other_blocks(shared, own)) {
    const at::Tensor joined = at::cat(parts_of(gathered, each), key_dimension);
    const at::Tensor of_joined = at::zeros_like(joined, sums.scalar_type());
    gradients.add(each.block, joined, of_joined);
    std::int64_t start = 0;
    for (const at::Tensor& part : parts_of(sums, each)) {
      const std::int64_t count = part.size(key_dimension);
      part.add_(of_joined.narrow(key_dimension, start, count));
      start += count;
    }
  }
  const at::Tensor home = shared.group.reduce_scatter(sums, 0).wait().squeeze(0);
  return gradients.of_qkv(home).to(saved.qkv.scalar_type());
}

strategies::CommunicationCounts calls_of_gather(const AttentionPass& pass) {
  const strategies::CollectiveCount gather{.calls = 1, .payload_bytes = 2 * pass.key_bytes()};
  if (!pass.is_backward) return {{"all_gather", gather}};
  strategies::CommunicationCounts calls = {
      {"reduce_scatter",
       {.calls = 1, .payload_bytes = 2 * pass.ranks * pass.key_gradient_bytes()}}};
  if (!pass.keep_gathered) calls.emplace("all_gather", gather);
  return calls;
}

STRATAGEM_REGISTER(AttentionForm{
    .name = "gather",
    .attention = AttentionByBlocks<attention_of_gathered, gradient_of_gathered>::of,
    .calls = calls_of_gather});

}  // namespace
}  // namespace stratagem::context_parallel
