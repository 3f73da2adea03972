#include "strategies/runtime/process_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <utility>

namespace stratagem::runtime {
namespace {

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

/// How many ranks a rank sends to in a binomial tree over `size` of them.
std::int64_t children(int rank, int root, int size) {
  const int relative = (rank - root + size) % size;
  const int reach = relative == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)))
                                  : relative & -relative;
  std::int64_t count = 0;
  for (int step = 1; step < reach; step *= 2) count += relative + step < size ? 1 : 0;
  return count;
}

/// Null for the calls whose works have none.
c10::intrusive_ptr<c10::ivalue::Future> future_of(c10d::Work& work) {
  try {
    return work.getFuture();
  } catch (const c10::Error&) {
    return {};
  }
}

}  // namespace

std::string first_line_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

Transfer::Transfer(std::string label, EventPointer start, c10::intrusive_ptr<c10d::Work> work,
                   at::Tensor tensor, Stamp stamp)
    : label_(std::move(label)),
      start_(std::move(start)),
      work_(std::move(work)),
      tensor_(std::move(tensor)),
      stamp_(std::move(stamp)) {
  const auto future = future_of(*work_);
  if (!future) return;
  // Runs when the collective has ended, before a waiter learns of it.
  future->addCallback([ending = ending_, stamp = stamp_](const auto&) {
    const std::lock_guard lock(ending->mutex);
    ending->event = stamp();
  });
}

void Transfer::wait() {
  try {
    work_->wait();
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("{}: {}", label_, first_line_of(error)));
  }
  const std::lock_guard lock(ending_->mutex);
  if (!ending_->event) ending_->event = stamp_();
}

EventPointer Transfer::end() const {
  const std::lock_guard lock(ending_->mutex);
  return ending_->event;
}

ProcessGroup::ProcessGroup(std::string name, std::vector<int> ranks, std::string backend,
                           Device& device, c10::intrusive_ptr<c10d::ProcessGroup> group)
    : name_(std::move(name)),
      ranks_(std::move(ranks)),
      backend_(std::move(backend)),
      members_(fmt::format(" in group {} (ranks {})", name_, fmt::join(ranks_, ", "))),
      device_(device),
      group_(std::move(group)) {}

TransferPointer ProcessGroup::all_reduce(at::Tensor tensor, Reduction reduction) {
  const std::int64_t bytes = bytes_of(tensor);
  return start("all_reduce", tensor, {1, bytes, 2 * ring_pass(bytes)}, [&] {
    std::vector<at::Tensor> tensors{tensor};
    c10d::AllreduceOptions options;
    if (reduction == Reduction::maximum) options.reduceOp = c10d::ReduceOp::MAX;
    return group_->allreduce(tensors, options);
  });
}

TransferPointer ProcessGroup::reduce_scatter(at::Tensor output, at::Tensor input) {
  const std::int64_t bytes = bytes_of(input);
  // c10d's Gloo reduces everything everywhere and keeps a slice.
  const std::int64_t wire = (backend_ == "gloo" ? 2 : 1) * ring_pass(bytes);
  return start("reduce_scatter", output, {1, bytes, wire},
               [&] { return group_->_reduce_scatter_base(output, input); });
}

TransferPointer ProcessGroup::all_gather(at::Tensor output, at::Tensor input) {
  const std::int64_t bytes = bytes_of(input);
  return start("all_gather", output, {1, bytes, bytes * (size() - 1)},
               [&] { return group_->_allgather_base(output, input); });
}

TransferPointer ProcessGroup::broadcast(at::Tensor tensor, int root) {
  const std::int64_t bytes = bytes_of(tensor);
  const std::int64_t wire =
      bytes * (backend_ == "gloo" ? children(rank(), root, size()) : (rank() == root ? 1 : 0));
  return start("broadcast", tensor, {1, bytes, wire}, [&] {
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return group_->broadcast(tensors, options);
  });
}

TransferPointer ProcessGroup::send(at::Tensor tensor, int to, int tag) {
  require_reachable(tensor);
  const std::int64_t bytes = bytes_of(tensor);
  return start("send", tensor, {1, bytes, bytes}, [&] {
    std::vector<at::Tensor> tensors{tensor};
    return group_->send(tensors, to, tag);
  });
}

TransferPointer ProcessGroup::receive(at::Tensor tensor, int from, int tag) {
  require_reachable(tensor);
  return start("receive", tensor, {1, bytes_of(tensor), 0}, [&] {
    std::vector<at::Tensor> tensors{tensor};
    return group_->recv(tensors, from, tag);
  });
}

/// Gloo stages tensors of a GPU in its collectives, and not in its sends.
void ProcessGroup::require_reachable(const at::Tensor& tensor) const {
  if (backend_ != "gloo" || tensor.is_cpu()) return;
  throw CommunicationError("gloo cannot send or receive tensors of a GPU; use --backend nccl");
}

void ProcessGroup::barrier() {
  const std::lock_guard lock(mutex_);
  try {
    group_->barrier()->wait();
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("barrier{}: {}", members_, first_line_of(error)));
  }
}

CommunicationCounts ProcessGroup::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void ProcessGroup::reset_counts() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
}

TransferPointer ProcessGroup::start(const std::string& collective, const at::Tensor& tensor,
                                    CollectiveCount count, const Call& call) {
  const std::string label =
      fmt::format("{} of {} bytes{}", collective, count.payload_bytes, members_);
  {
    const std::lock_guard lock(mutex_);
    CollectiveCount& total = counts_[collective];
    total.calls += count.calls;
    total.payload_bytes += count.payload_bytes;
    total.wire_bytes += count.wire_bytes;
  }
  const auto stamp = [this] { return device_.stamp(); };
  EventPointer begun = stamp();
  try {
    return std::make_shared<Transfer>(label, std::move(begun), call(), tensor, stamp);
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("{}: {}", label, first_line_of(error)));
  }
}

}  // namespace stratagem::runtime
