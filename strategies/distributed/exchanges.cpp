// Collectives that Gloo's all-to-all carries faster than Gloo's own algorithms.
#include <ATen/ATen.h>

#include <utility>

#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/process_group.h"
#include "strategies/distributed/rank_order_sum.h"

namespace stratagem::distributed {

TransferPointer ProcessGroup::all_reduce_by_exchange(const at::Tensor& tensor,
                                                     Reduction reduction) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  // A small message's time depends on each operator, so there are few.
  const at::NoGradGuard no_gradient;
  std::vector<std::int64_t> one_of_each = tensor.sizes().vec();
  one_of_each.insert(one_of_each.begin(), size());
  const at::Tensor sent = at::empty(one_of_each, tensor.options()).copy_(tensor);
  const at::Tensor received = at::empty(one_of_each, tensor.options());
  const std::int64_t bytes = static_cast<std::int64_t>(tensor.nbytes());
  const auto add_up = [result = tensor, sent, received, reduction]() mutable {
    const at::NoGradGuard no_gradient_either;
    if (reduction == Reduction::maximum) {
      at::amax_out(result, received, 0);
    } else {
      at::sum_out(result, received, 0);
    }
  };
  return start(
      "all_reduce", tensor, {1, bytes, bytes * (size() - 1)},
      [&] {
        at::Tensor output = received;
        at::Tensor input = sent;
        std::vector<std::int64_t> equal;
        return group_->alltoall_base(output, input, equal, equal);
      },
      ends_, add_up);
}

TransferPointer ProcessGroup::reduce_scatter_by_exchange(const at::Tensor& output,
                                                         const at::Tensor& input) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const auto own_rank = static_cast<std::size_t>(rank());
  const at::Tensor sum = output.detach().view(-1);
  const at::Tensor all = input.detach().view(-1);
  const std::int64_t share = sum.numel();
  at::Tensor sent = all;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size()), share);
  // Gloo copies a rank's message to itself. A part at the buffer's end can be left out, but with
  // more than two ranks not if the sum overwrites it before it is added.
  const bool at_end = rank() == 0 || rank() + 1 == size();
  if (size() > 1 && at_end && (size() == 2 || !output.is_alias_of(input))) {
    sent = all.narrow(0, rank() == 0 ? share : 0, all.numel() - share);
    lengths[own_rank] = 0;
  }
  at::Tensor received = at::empty_like(sent);
  std::vector<at::Tensor> parts = received.split_with_sizes(lengths);
  if (lengths[own_rank] == 0) parts[own_rank] = all.narrow(0, rank() * share, share);
  const std::int64_t bytes = static_cast<std::int64_t>(input.nbytes());
  return start(
      "reduce_scatter", output, {1, bytes, ring_pass(bytes)},
      [&] { return group_->alltoall_base(received, sent, lengths, lengths); }, ends_,
      [sum, parts = std::move(parts)] { sum_in_rank_order(sum, parts); });
}

/// c10d's Gloo gathers into a separate buffer and copies that. Of two ranks each sends the other
/// its part directly to its final place. Between hosts c10d's runs instead: it sends pieces, which
/// share the one connection with a transfer in flight, whereas a whole part would wait behind it.
TransferPointer ProcessGroup::all_gather_of_two(const at::Tensor& output, const at::Tensor& input) {
  const at::Tensor all = output.detach().view(-1);
  const at::Tensor sent = input.detach().view(-1);
  const std::int64_t share = sent.numel();
  std::vector<std::int64_t> lengths(2, share);
  lengths[static_cast<std::size_t>(rank())] = 0;
  const std::int64_t bytes = static_cast<std::int64_t>(input.nbytes());
  return start("all_gather", output, {1, bytes, bytes}, [&] {
    const at::Tensor own = all.narrow(0, rank() * share, share);
    if (own.const_data_ptr() != sent.const_data_ptr()) own.copy_(sent);
    at::Tensor received = all.narrow(0, (1 - rank()) * share, share);
    at::Tensor part = sent;
    return group_->alltoall_base(received, part, lengths, lengths);
  });
}

}  // namespace stratagem::distributed
