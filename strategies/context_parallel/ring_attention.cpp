// Attention with keys and values that go round the ranks (Liu et al. 2023, "Ring Attention with
// Blockwise Transformers for Near-Infinite Context", section 3). The gradients of keys and values
// make one hop fewer than a round, because each rank adds those of its own last.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <optional>

#include "strategies/context_parallel/attention_form.h"
#include "strategies/context_parallel/whole_attention.h"

namespace stratagem::context_parallel {
namespace {

/// The blocks that this rank computes with the keys that arrive after `hops`.
std::vector<Block> blocks_after(int hops, const SharedPositions& shared, std::int64_t own) {
  const int ranks = shared.group.size();
  const int rank = shared.group.rank();
  return blocks_of(shared.order, rank, (rank - hops + ranks) % ranks, own);
}

ForwardResult attention_round_the_ring(const at::Tensor& qkv, const GroupedHeads& heads,
                                       const SharedPositions& shared) {
  AttentionSum sum(qkv, heads);
  at::Tensor keys = keys_and_values_of(qkv, heads);
  for (int hops = 0; hops < shared.group.size(); ++hops) {
    std::optional<Exchange> next;
    if (hops + 1 < shared.group.size()) next.emplace(shared.group, shared.group.rotate(keys));
    for (const Block& block : blocks_after(hops, shared, qkv.size(1))) sum.add(block, keys);
    if (next) keys = next->wait();
  }
  return {.whole = sum.whole()};
}

/// The sum for a rank's keys starts at the next rank, and the last hop brings it home.
at::Tensor gradient_round_the_ring(const SavedAttention& saved, const at::Tensor& output_gradient,
                                   const SharedPositions& shared) {
  const at::Tensor& qkv = saved.qkv;
  AttentionGradients gradients(saved, output_gradient);
  at::Tensor keys = keys_and_values_of(qkv, saved.heads);
  const at::Tensor home = at::zeros_like(keys, at::toOpMathType(keys.scalar_type()));
  std::optional<Exchange> sums;
  for (int hops = 0; hops < shared.group.size(); ++hops) {
    std::optional<Exchange> next;
    if (hops + 1 < shared.group.size()) next.emplace(shared.group, shared.group.rotate(keys));
    const at::Tensor part = hops == 0 ? home : at::zeros_like(home);
    for (const Block& block : blocks_after(hops, shared, qkv.size(1))) {
      gradients.add(block, keys, part);
    }
    if (sums) part.add_(sums->wait());
    sums.reset();  // frees what arrived
    if (hops > 0) sums.emplace(shared.group, shared.group.rotate(part));
    if (next) keys = next->wait();
  }
  if (sums) home.add_(sums->wait());
  return gradients.of_qkv(home).to(qkv.scalar_type());
}

strategies::CommunicationCounts calls_of_ring(const AttentionPass& pass) {
  const std::int64_t hops = pass.ranks - 1;
  strategies::CollectiveCount count{.calls = hops, .payload_bytes = 2 * hops * pass.key_bytes()};
  if (pass.is_backward) {
    count += {.calls = hops, .payload_bytes = 2 * hops * pass.key_gradient_bytes()};
  }
  return {{"rotate", count}};
}

STRATAGEM_REGISTER(AttentionForm{
    .name = "ring",
    .attention = AttentionByBlocks<attention_round_the_ring, gradient_round_the_ring>::of,
    .calls = calls_of_ring});

}  // namespace
}  // namespace stratagem::context_parallel
