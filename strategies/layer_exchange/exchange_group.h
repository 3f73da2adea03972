// ExchangeGroup: the collectives of layers that share a matrix, or the positions of a sequence, and
// their records for the timeline.
//
// A collective begins and, if something else can be computed meanwhile, is waited for later. Every
// collective is kept until the strategy takes it, with the times of its flight and of the layer's
// wait for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "strategies/distributed/process_group.h"

namespace stratagem::layer_exchange {

/// One collective: [transfer->start(), transfer->end()] is its flight, [wait_start, wait_end] the
/// wait for it.
struct LayerCollective {
  distributed::TransferPointer transfer;
  runtime::EventPointer wait_start;
  runtime::EventPointer wait_end;
};

class ExchangeGroup;

/// A collective in flight, which must be waited for once.
class PendingCollective {
 public:
  using Finish = std::function<at::Tensor(const at::Tensor&)>;
  /// `finish` turns the data in `buffer` into the result; without it the data is the result.
  PendingCollective(ExchangeGroup& group, distributed::TransferPointer transfer, at::Tensor buffer,
                    Finish finish = {})
      : group_(&group),
        transfer_(std::move(transfer)),
        buffer_(std::move(buffer)),
        finish_(std::move(finish)) {}

  at::Tensor wait();

 private:
  ExchangeGroup* group_;
  distributed::TransferPointer transfer_;
  at::Tensor buffer_;
  Finish finish_;
};

/// The use of collectives by layers.
struct ExchangeOptions {
  bool overlap = true;         // false: the caller should wait at once
  bool keep_gathered = false;  // gathered tensors stay for the backward pass; false: they are
                               // gathered again there
  distributed::ReduceScatter reduce_scatter = "exchange";
};

class ExchangeGroup {
 public:
  /// `group` and `device`, whose thread runs the layers, must outlive this.
  ExchangeGroup(distributed::ProcessGroup& group, runtime::Device& device,
                const ExchangeOptions& options)
      : group_(group), device_(device), options_(options) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  const ExchangeOptions& options() const { return options_; }
  distributed::ProcessGroup& ranks() { return group_; }

  /// Replaces `tensor`, which is contiguous, by the sum, or the largest, of all ranks' tensors.
  PendingCollective all_reduce(at::Tensor tensor,
                               distributed::Reduction reduction = distributed::Reduction::sum);
  /// Concatenates all ranks' tensors along `dimension`.
  PendingCollective all_gather(const at::Tensor& tensor, std::int64_t dimension);
  /// Returns this rank's part, along `dimension`, of the sum of all ranks' tensors. Throws
  /// std::invalid_argument unless the number of ranks divides the dimension.
  PendingCollective reduce_scatter(const at::Tensor& tensor, std::int64_t dimension);

  /// Sends part i of [ranks, ...], which is contiguous, to rank i, and returns what the ranks send,
  /// in their order.
  PendingCollective all_to_all(const at::Tensor& parts);

  /// Sends a tensor to the next rank and returns the previous rank's, of the same size.
  PendingCollective rotate(const at::Tensor& tensor);

  /// Returns a view of this rank's part of a tensor that all ranks have.
  at::Tensor own_part(const at::Tensor& tensor, std::int64_t dimension) const;

  /// Returns the collectives since the last call, in the order of their waits.
  std::vector<LayerCollective> take_collectives();

 private:
  friend class PendingCollective;
  void finish(const distributed::TransferPointer& transfer);

  distributed::ProcessGroup& group_;
  runtime::Device& device_;
  ExchangeOptions options_;
  std::mutex mutex_;
  std::vector<LayerCollective> collectives_;
};

}  // namespace stratagem::layer_exchange
