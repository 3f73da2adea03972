// ProcessGroup: the collectives of some ranks of a job, over c10d (Gloo or NCCL).
//
// Every call is counted and stamped. `payload_bytes` is what the rank hands to the call;
// `wire_bytes` is what it sends under the algorithm that the backend uses: a ring for all-reduce,
// reduce-scatter and all-gather, a binomial tree for Gloo's broadcast, a ring and a gather for its
// reduce, one message a pair of ranks for gather, scatter, all-to-all and, over Gloo, for
// reduce-scatters and small all-reduces, which every rank then adds up in the order of the ranks.
// Calls of one group must be made in the same order by all its ranks; a call that does not end
// within the group's time limit is an error, never a hang. Over NCCL a GPU waits and not the
// caller: there the limit is that of whoever waits for the device, who then aborts the groups.
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

/// A collective, send or receive in flight. It keeps its tensors until it was waited for, and then
/// its times alone.
class Transfer {
 public:
  using Stamp = std::function<runtime::EventPointer()>;

  /// `ends` stamps the end of a call whose backend tells it; null: none does. `finish`, where
  /// given, brings the result to where it belongs once the call has ended.
  Transfer(std::string label, runtime::EventPointer start, c10::intrusive_ptr<c10d::Work> work,
           at::Tensor tensor, Stamp stamp, std::shared_ptr<runtime::EndStamps> ends,
           std::function<void()> finish = {});

  /// Returns when the result may be used by what the calling thread does next. Throws
  /// CommunicationError.
  void wait();

  /// When the call was made, and when it had ended; the latter is valid after wait(), and is when
  /// that returned for sends, receives, and where the backend does not tell (Gloo's own
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

/// Who reduces and scatters. The exchange is an all-to-all, and a sum of what came; over Gloo with
/// tensors of the host, elsewhere the library does it.
using ReduceScatter = runtime::Choice<"exchange", "library">;

using Backend = runtime::Choice<"gloo", "nccl">;

struct BackendOptions {
  /// Of Gloo; empty: loopback. NCCL reads its own from the environment: library_environment.h.
  std::string interface_name = {};
  std::chrono::milliseconds timeout{120'000};
};

class ProcessGroup {
 public:
  /// `ranks` are the members' ranks in the job, in the order of their ranks in the group.
  /// `device` is where the tensors of the calls lie; it stamps them, and outlives the group.
  /// `limit` is that of a barrier; `loopback`: whether the ranks share a host.
  ProcessGroup(const std::string& name, std::vector<int> ranks, Backend backend,
               runtime::Device& device, c10::intrusive_ptr<c10d::ProcessGroup> group,
               std::chrono::milliseconds limit = BackendOptions().timeout, bool loopback = true);
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return group_->getRank(); }
  int size() const { return group_->getSize(); }
  const std::vector<int>& ranks() const { return ranks_; }
  /// Its name and ranks: "data of device 0 (ranks 0, 1)".
  const std::string& title() const { return title_; }
  Backend backend() const { return backend_; }
  std::chrono::milliseconds limit() const { return limit_; }

  // Asynchronous; in place where there is one tensor. All tensors are contiguous.
  TransferPointer all_reduce(at::Tensor tensor, Reduction reduction = Reduction::sum);
  /// `output` [n] becomes this rank's part of the sum of all ranks' `input` [ranks x n]. By
  /// exchange the sum is added from the first rank's part to the last's, on every rank; bfloat16
  /// and float16 are summed in float32, which `output` may be, too. There `output` may lie in
  /// `input`, as this rank's part. Throws std::invalid_argument for other sizes and types.
  TransferPointer reduce_scatter(at::Tensor output, at::Tensor input,
                                 ReduceScatter by = ReduceScatter("exchange"));
  /// `output` [ranks x n] becomes the ranks' inputs [n] one after another; `input` may lie there,
  /// as this rank's part.
  TransferPointer all_gather(at::Tensor output, at::Tensor input);
  TransferPointer broadcast(at::Tensor tensor, int root);
  /// The sum is the root's; what the others are left with is undefined.
  TransferPointer reduce(at::Tensor tensor, int root);
  /// The root's `output` holds the ranks' inputs one after another; the others' is ignored.
  TransferPointer gather(at::Tensor output, at::Tensor input, int root);
  /// Each rank's `output` is its part of the root's `input`; the others' is ignored.
  TransferPointer scatter(at::Tensor output, at::Tensor input, int root);
  /// The parts of `input` go to the ranks in their order; those of `output` come from them.
  TransferPointer all_to_all(at::Tensor output, at::Tensor input);
  /// Between two ranks of the group, whose sends and receives meet in the order of the calls.
  /// Tensors of a GPU are sent over Gloo by way of the host: a send waits for the current stream.
  TransferPointer send(at::Tensor tensor, int to);
  TransferPointer receive(at::Tensor tensor, int from);
  /// Returns when every rank has come to it.
  void barrier();
  /// Ends the calls in flight, so that nothing on a GPU waits for a lost rank any more. Over NCCL
  /// only: calls over Gloo end at the time limit. The group is of no use afterwards.
  void abort();

  /// Since the last reset.
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
  /// Without `ends` where they are in no order: sends and receives of a pair of ranks wait for
  /// those of no other.
  TransferPointer start(const std::string& name, const at::Tensor& tensor, CollectiveCount cost,
                        const Call& call, std::shared_ptr<runtime::EndStamps> ends,
                        std::function<void()> finish = {});
  void count(const std::string& collective, const CollectiveCount& call);
  /// A ring's share of `bytes` for one pass over it.
  std::int64_t ring_pass(std::int64_t bytes) const { return bytes * (size() - 1) / size(); }
  /// Gloo stages a GPU's tensors in its collectives, and not in its sends and receives.
  bool goes_by_the_host(const at::Tensor& tensor) const {
    return backend_ == "gloo" && !tensor.is_cpu();
  }

  std::vector<int> ranks_;
  Backend backend_;
  std::string title_;
  std::string members_;  // for errors: " in group data (ranks 0, 1)"
  runtime::Device& device_;
  std::shared_ptr<runtime::EndStamps> ends_;  // of the collectives
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::chrono::milliseconds limit_;
  bool loopback_;
  mutable std::mutex mutex_;
  CommunicationCounts counts_;
};

/// Connects the ranks that share `store`; the first collective call of each. Throws
/// CommunicationError, and std::invalid_argument for an interface that is not there.
c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options);

/// Whether such a group's bytes stay on this host.
bool gloo_takes_the_loopback(const BackendOptions& options);

/// The same over NCCL, for tensors on GPUs; std::invalid_argument in a build without it.
c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options);

}  // namespace stratagem::distributed
