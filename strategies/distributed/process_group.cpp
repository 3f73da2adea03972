#include "strategies/distributed/process_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <stdexcept>
#include <thread>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/rank_order_sum.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::distributed {
namespace {

constexpr int no_tag = 0;

/// Up to this many bytes, over all ranks, Gloo's all-to-all takes a quarter of the time of its
/// all-reduce, which is 2 (n - 1) messages one after another (`bench_collectives --collectives
/// all_reduce,all_to_all`).
constexpr std::int64_t exchanged_bytes = 128 * 1024;

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

/// Returns the number of ranks to which a rank sends in a binomial tree over `size` ranks.
std::int64_t children(int rank, int root, int size) {
  const int relative = (rank - root + size) % size;
  const int reach = relative == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)))
                                  : relative & -relative;
  std::int64_t count = 0;
  for (int step = 1; step < reach; step *= 2) count += relative + step < size ? 1 : 0;
  return count;
}

/// Returns the result of `call` and turns its exceptions into CommunicationErrors about `label`.
template <class Call>
auto attempt(const std::string& label, const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(fmt::format("{}: {}", label, runtime::first_line(error)));
  }
}

/// Returns null for calls whose work has no future.
c10::intrusive_ptr<c10::ivalue::Future> future_of(c10d::Work& work) {
  try {
    return work.getFuture();
  } catch (const c10::Error&) {
    return {};
  }
}

/// Waits up to a limit, which NCCL's own wait for a barrier lacks.
void wait_for(c10d::Work& work, std::chrono::milliseconds limit) {
  constexpr std::chrono::microseconds poll_interval{50};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!work.isCompleted()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error(
          fmt::format("not every rank reached the barrier within {:.3g} s (--timeout)",
                      std::chrono::duration<double>(limit).count()));
    }
    std::this_thread::sleep_for(poll_interval);
  }
}

}  // namespace

Transfer::Transfer(std::string label, runtime::EventPointer start,
                   c10::intrusive_ptr<c10d::Work> work, at::Tensor tensor, Stamp stamp,
                   std::shared_ptr<runtime::EndStamps> ends, std::function<void()> finish)
    : label_(std::move(label)),
      start_(std::move(start)),
      work_(std::move(work)),
      tensor_(std::move(tensor)),
      stamp_(std::move(stamp)),
      finish_(std::move(finish)) {
  const auto future = ends ? future_of(*work_) : nullptr;
  if (!future) return;
  // Runs at the end of the collective, before a waiter is notified; over NCCL at once, where the
  // future makes a stream wait. That stream must be the stamps' own: the future would choose from
  // the pool from which NCCL takes its own.
  future->addCallback(
      [ending = ending_, ends = std::move(ends)](c10::ivalue::Future& ended) {
        const std::lock_guard lock(ending->mutex);
        ending->event = ends->stamp_behind([&ended] { ended.wait(); });
      },
      /*uses_future=*/false);
}

void Transfer::wait() {
  if (!work_) return;
  attempt(label_, [this] {
    work_->wait();
    if (finish_) std::exchange(finish_, {})();
  });
  work_.reset();
  tensor_.reset();
  const std::lock_guard lock(ending_->mutex);
  if (!ending_->event) ending_->event = stamp_();
}

runtime::EventPointer Transfer::end() const {
  const std::lock_guard lock(ending_->mutex);
  return ending_->event;
}

ProcessGroup::ProcessGroup(const std::string& name, std::vector<int> ranks, Backend backend,
                           runtime::Device& device, c10::intrusive_ptr<c10d::ProcessGroup> group,
                           std::chrono::milliseconds limit, bool loopback)
    : ranks_(std::move(ranks)),
      backend_(backend),
      title_(fmt::format("{} (ranks {})", name, fmt::join(ranks_, ", "))),
      members_(" in group " + title_),
      device_(device),
      ends_(device.make_end_stamps()),
      group_(std::move(group)),
      limit_(limit),
      loopback_(loopback) {}

TransferPointer ProcessGroup::all_reduce(at::Tensor tensor, Reduction reduction) {
  const std::int64_t bytes = bytes_of(tensor);
  if (backend_ == "gloo" && tensor.is_cpu() && size() > 1 && bytes * size() <= exchanged_bytes) {
    return all_reduce_by_exchange(tensor, reduction);
  }
  return start("all_reduce", tensor, {1, bytes, 2 * ring_pass(bytes)}, [&] {
    std::vector<at::Tensor> tensors{tensor};
    c10d::AllreduceOptions options;
    if (reduction == Reduction::maximum) options.reduceOp = c10d::ReduceOp::MAX;
    return group_->allreduce(tensors, options);
  });
}

TransferPointer ProcessGroup::reduce_scatter(at::Tensor output, at::Tensor input,
                                             ReduceScatter by) {
  const bool by_exchange =
      by == "exchange" && backend_ == "gloo" && input.is_cpu() && output.is_cpu();
  check_reduce_scatter(output, input, by_exchange);
  if (by_exchange) return reduce_scatter_by_exchange(output, input);
  const std::int64_t bytes = bytes_of(input);
  // c10d's Gloo reduces everything on every rank and keeps a slice.
  const std::int64_t wire = (backend_ == "gloo" ? 2 : 1) * ring_pass(bytes);
  return start("reduce_scatter", output, {1, bytes, wire},
               [&] { return group_->_reduce_scatter_base(output, input); });
}

void ProcessGroup::check_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                        bool by_exchange) const {
  if (output.numel() * size() != input.numel()) {
    throw std::invalid_argument(
        fmt::format("reduce_scatter{}: output has {} elements for an input of {}; expected {}",
                    members_, output.numel(), input.numel(), input.numel() / size()));
  }
  if (by_exchange ? holds_sum_of(output, input) : output.scalar_type() == input.scalar_type()) {
    return;
  }
  throw std::invalid_argument(
      fmt::format("reduce_scatter{}: output is {} for an input of {}; expected {}", members_,
                  c10::toString(output.scalar_type()), c10::toString(input.scalar_type()),
                  c10::toString(input.scalar_type())));
}

TransferPointer ProcessGroup::all_gather(at::Tensor output, at::Tensor input) {
  if (backend_ == "gloo" && loopback_ && size() == 2 && output.is_cpu() && input.is_cpu() &&
      output.scalar_type() == input.scalar_type() && output.numel() == 2 * input.numel()) {
    return all_gather_of_two(output, input);
  }
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

TransferPointer ProcessGroup::reduce(at::Tensor tensor, int root) {
  const std::int64_t bytes = bytes_of(tensor);
  // Gloo: a ring's reduce-scatter, and each rank's part to the root.
  const std::int64_t to_root = rank() == root ? 0 : bytes / size();
  const std::int64_t wire =
      backend_ == "gloo" ? ring_pass(bytes) + to_root : (rank() == root ? 0 : bytes);
  return start("reduce", tensor, {1, bytes, wire}, [&] {
    std::vector<at::Tensor> tensors{tensor};
    c10d::ReduceOptions options;
    options.rootRank = root;
    return group_->reduce(tensors, options);
  });
}

TransferPointer ProcessGroup::gather(at::Tensor output, at::Tensor input, int root) {
  const std::int64_t bytes = bytes_of(input);
  const bool is_root = rank() == root;
  return start("gather", is_root ? output : input, {1, bytes, is_root ? 0 : bytes}, [&] {
    std::vector<std::vector<at::Tensor>> outputs;
    if (is_root) outputs.push_back(output.chunk(size()));
    std::vector<at::Tensor> inputs{input};
    c10d::GatherOptions options;
    options.rootRank = root;
    return group_->gather(outputs, inputs, options);
  });
}

TransferPointer ProcessGroup::scatter(at::Tensor output, at::Tensor input, int root) {
  const bool is_root = rank() == root;
  const std::int64_t bytes = is_root ? bytes_of(input) : 0;
  return start("scatter", is_root ? input : output, {1, bytes, ring_pass(bytes)}, [&] {
    std::vector<std::vector<at::Tensor>> inputs;
    if (is_root) inputs.push_back(input.chunk(size()));
    std::vector<at::Tensor> outputs{output};
    c10d::ScatterOptions options;
    options.rootRank = root;
    return group_->scatter(outputs, inputs, options);
  });
}

TransferPointer ProcessGroup::all_to_all(at::Tensor output, at::Tensor input) {
  const std::int64_t bytes = bytes_of(input);
  return start("all_to_all", output, {1, bytes, ring_pass(bytes)}, [&] {
    std::vector<std::int64_t> equal;
    return group_->alltoall_base(output, input, equal, equal);
  });
}

// One call for both directions: NCCL runs an ungrouped send to its end before a receive.
TransferPointer ProcessGroup::rotate(at::Tensor output, at::Tensor input) {
  const std::int64_t bytes = bytes_of(input);
  return start("rotate", output, {1, bytes, bytes}, [&] {
    const auto ranks = static_cast<std::size_t>(size());
    std::vector<std::int64_t> sent(ranks, 0);
    std::vector<std::int64_t> received(ranks, 0);
    const auto own = static_cast<std::size_t>(rank());
    sent[(own + 1) % ranks] = input.numel();
    received[(own + ranks - 1) % ranks] = output.numel();
    at::Tensor to = output.view(-1);
    at::Tensor from = input.view(-1);
    return group_->alltoall_base(to, from, received, sent);
  });
}

TransferPointer ProcessGroup::send(at::Tensor tensor, int to) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const std::int64_t bytes = bytes_of(tensor);
  const at::Tensor sent = goes_by_the_host(tensor) ? tensor.cpu() : tensor;
  return start(
      "send", sent, {1, bytes, bytes},
      [&] {
        std::vector<at::Tensor> tensors{sent};
        return group_->send(tensors, to, no_tag);
      },
      /*ends=*/nullptr);
}

TransferPointer ProcessGroup::receive(at::Tensor tensor, int from) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const bool staged = goes_by_the_host(tensor);
  const at::Tensor received = staged ? at::empty_like(tensor, at::kCPU) : tensor;
  std::function<void()> finish;
  if (staged) finish = [tensor, received] { tensor.copy_(received); };
  return start(
      "receive", received, {1, bytes_of(tensor), 0},
      [&] {
        std::vector<at::Tensor> tensors{received};
        return group_->recv(tensors, from, no_tag);
      },
      /*ends=*/nullptr, std::move(finish));
}

void ProcessGroup::barrier() {
  count("barrier", {1, 0, 0});
  // The backend's barrier: c10d's dispatches by a tensor that all threads of the process share.
  attempt("barrier" + members_, [this] {
    const auto backend = group_->getDefaultBackend();
    if (backend_ != "nccl") {
      backend->barrier()->wait();
      return;
    }
    c10d::BarrierOptions options;  // by default the thread's device: on every rank the first
    options.device = backends::torch_device(device_.description());
    options.device_ids = {options.device->index()};
    const auto work = backend->barrier(options);
    wait_for(*work, limit_);
    work->wait();
  });
}

void ProcessGroup::abort() {
  attempt("abort" + members_, [this] { group_->abort(); });
}

void ProcessGroup::count(const std::string& collective, const CollectiveCount& call) {
  const std::lock_guard lock(mutex_);
  counts_[collective] += call;
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
                                    CollectiveCount cost, const Call& call) {
  return start(collective, tensor, cost, call, ends_);
}

TransferPointer ProcessGroup::start(const std::string& name, const at::Tensor& tensor,
                                    CollectiveCount cost, const Call& call,
                                    std::shared_ptr<runtime::EndStamps> ends,
                                    std::function<void()> finish) {
  const std::string label = fmt::format("{} of {} bytes{}", name, cost.payload_bytes, members_);
  count(name, cost);
  const auto stamp = [this] { return device_.stamp(); };
  runtime::EventPointer begun = stamp();
  return attempt(label, [&] {
    return std::make_shared<Transfer>(label, std::move(begun), call(), tensor, stamp,
                                      std::move(ends), std::move(finish));
  });
}

}  // namespace stratagem::distributed
