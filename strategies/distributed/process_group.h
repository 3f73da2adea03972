// ProcessGroup: the collectives of some ranks of a job, over c10d (Gloo or NCCL).
//
// Every call is counted and stamped. `payload_bytes` is the size of the rank's tensors;
// `wire_bytes` is what it sends under the backend's algorithm: a ring for all-reduce,
// reduce-scatter and all-gather, a binomial tree for Gloo's broadcast, a ring and a gather for its
// reduce, one message a pair of ranks for gather, scatter, all-to-all and, over Gloo, for
// reduce-scatters and small all-reduces, which every rank then adds up in the order of the ranks,
// one message a rank for rotate.
// All ranks of a group must make its calls in the same order; a call that does not end within the
// group's time limit is an error, never a hang. Over NCCL a GPU waits and not the caller: there the
// limit is that of the wait for the device, after which the waiter aborts the groups.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "strategies/costs.h"
#include "strategies/runtime/choice.h"
#include "strategies/runtime/communication_error.h"
#include "strategies/runtime/device.h"

namespace stratagem::distributed {

using strategies::CollectiveCount;
using strategies::CommunicationCounts;

/// A collective, send or receive in flight. It keeps its tensors until the wait for it, and then
/// only its times.
class Transfer {
 public:
  using Stamp = std::function<runtime::EventPointer()>;

  /// `ends` stamps the end of a call if the backend reports it; null if it does not. `finish`, if
  /// given, moves the result to its place once the call has ended.
  Transfer(std::string label, runtime::EventPointer start, c10::intrusive_ptr<c10d::Work> work,
           at::Tensor tensor, Stamp stamp, std::shared_ptr<runtime::EndStamps> ends,
           std::function<void()> finish = {});

  /// Returns when the calling thread's next work may use the result. Throws CommunicationError.
  void wait();

  /// Return the events of the call and of its end. end() is valid after wait(). It is when wait()
  /// returned for sends, receives, and if the backend does not report the end (Gloo's own
  /// reduce-scatter).
  const runtime::EventPointer& start() const { return start_; }
  runtime::EventPointer end() const;

 private:
  struct Ending {
    std::mutex mutex;
    runtime::EventPointer event;
  };

  std::string label_;
  runtime::EventPointer start_;
  c10::intrusive_ptr<c10d::Work> work_;
  at::Tensor tensor_;
  Stamp stamp_;
  std::function<void()> finish_;
  std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
};
using TransferPointer = std::shared_ptr<Transfer>;

enum class Reduction { sum, maximum };

/// The implementation of reduce-scatters. The exchange is an all-to-all and a sum of its results;
/// it applies over Gloo to tensors of the host, elsewhere the library does it.
using ReduceScatter = runtime::Choice<"exchange", "library">;

using Backend = runtime::Choice<"gloo", "nccl">;

struct BackendOptions {
  /// Gloo's interface; empty: loopback. NCCL's is in the environment: library_environment.h.
  std::string interface_name = {};
  std::chrono::milliseconds timeout{120'000};
};

class ProcessGroup {
 public:
  /// `ranks` are the members' ranks in the job, in the order of their ranks in the group. `device`
  /// holds the calls' tensors, stamps the calls and must outlive the group. `limit` is that of a
  /// barrier; `loopback`: the ranks share a host.
  ProcessGroup(const std::string& name, std::vector<int> ranks, Backend backend,
               runtime::Device& device, c10::intrusive_ptr<c10d::ProcessGroup> group,
               std::chrono::milliseconds limit = BackendOptions().timeout, bool loopback = true);
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return group_->getRank(); }
  int size() const { return group_->getSize(); }
  const std::vector<int>& ranks() const { return ranks_; }
  /// Returns its name and ranks: "data of device 0 (ranks 0, 1)".
  const std::string& title() const { return title_; }
  Backend backend() const { return backend_; }
  std::chrono::milliseconds limit() const { return limit_; }

  // Calls are asynchronous, and in place if they take one tensor. All tensors are contiguous.
  TransferPointer all_reduce(at::Tensor tensor, Reduction reduction = Reduction::sum);
  /// Sets `output` [n] to this rank's part of the sum of all ranks' `input` [ranks x n]. The
  /// exchange adds from the first rank's part to the last's, on every rank, and bfloat16 and
  /// float16 in float32, which `output` may be, too. With it `output` may be this rank's part of
  /// `input`. Throws std::invalid_argument for other sizes and types.
  TransferPointer reduce_scatter(at::Tensor output, at::Tensor input,
                                 ReduceScatter by = ReduceScatter("exchange"));
  /// Sets `output` [ranks x n] to the ranks' inputs [n] in order; `input` may be this rank's part
  /// of it.
  TransferPointer all_gather(at::Tensor output, at::Tensor input);
  TransferPointer broadcast(at::Tensor tensor, int root);
  /// Leaves the sum on the root; the other ranks' tensors are undefined.
  TransferPointer reduce(at::Tensor tensor, int root);
  /// Sets the root's `output` to the ranks' inputs in order and ignores the others' `output`.
  TransferPointer gather(at::Tensor output, at::Tensor input, int root);
  /// Sets each rank's `output` to its part of the root's `input` and ignores the others' `input`.
  TransferPointer scatter(at::Tensor output, at::Tensor input, int root);
  /// Sends the parts of `input` to the ranks in order and fills `output` with theirs.
  TransferPointer all_to_all(at::Tensor output, at::Tensor input);
  /// Sends `input` to the next rank, the first after the last, and fills `output`, of the same
  /// size, with the previous rank's.
  TransferPointer rotate(at::Tensor output, at::Tensor input);
  /// Two ranks' sends and receives meet in the order of the calls. Over Gloo a GPU's tensors go
  /// through the host: a send waits for the current stream.
  TransferPointer send(at::Tensor tensor, int to);
  TransferPointer receive(at::Tensor tensor, int from);
  /// Returns when every rank has called it.
  void barrier();
  /// Ends the calls in flight, so that no GPU waits for a lost rank any more. Works only over NCCL:
  /// calls over Gloo end at the time limit. The group is unusable afterwards.
  void abort();

  /// Returns the counts since the last reset.
  CommunicationCounts counts() const;
  void reset_counts();

  const c10::intrusive_ptr<c10d::ProcessGroup>& c10d() const { return group_; }

 private:
  using Call = std::function<c10::intrusive_ptr<c10d::Work>()>;
  TransferPointer all_reduce_by_exchange(const at::Tensor& tensor, Reduction reduction);
  TransferPointer reduce_scatter_by_exchange(const at::Tensor& output, const at::Tensor& input);
  TransferPointer all_gather_of_two(const at::Tensor& output, const at::Tensor& input);
  void check_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                            bool by_exchange) const;
  TransferPointer start(const std::string& collective, const at::Tensor& tensor,
                        CollectiveCount cost, const Call& call);
  /// Pass no `ends` for calls without an order: sends and receives of one pair of ranks do not wait
  /// for those of another.
  TransferPointer start(const std::string& name, const at::Tensor& tensor, CollectiveCount cost,
                        const Call& call, std::shared_ptr<runtime::EndStamps> ends,
                        std::function<void()> finish = {});
  void count(const std::string& collective, const CollectiveCount& call);
  /// Returns a ring's share of `bytes` for one pass over it.
  std::int64_t ring_pass(std::int64_t bytes) const { return bytes * (size() - 1) / size(); }
  /// Returns whether messages use the host: Gloo stages a GPU's tensors only in collectives.
  bool goes_by_the_host(const at::Tensor& tensor) const {
    return backend_ == "gloo" && !tensor.is_cpu();
  }

  std::vector<int> ranks_;
  Backend backend_;
  std::string title_;
  std::string members_;  // for errors: " in group data (ranks 0, 1)"
  runtime::Device& device_;
  std::shared_ptr<runtime::EndStamps> ends_;  // stamps of the collectives
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::chrono::milliseconds limit_;
  bool loopback_;
  mutable std::mutex mutex_;
  CommunicationCounts counts_;
};

/// Connects the ranks that share `store`; the first collective call of each. Throws
/// CommunicationError, and std::invalid_argument if the interface does not exist.
c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options);

/// Returns whether the bytes of such a group stay on this host.
bool gloo_takes_the_loopback(const BackendOptions& options);

/// Connects over NCCL, for tensors on GPUs. Throws std::invalid_argument in a build without it.
c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options);

}  // namespace stratagem::distributed
