// TensorGroup: what the layers that share a matrix exchange, and a record of it for the timeline.
//
// An exchange is begun and, where something else can be computed meanwhile, waited for later. Every
// exchange is kept until the strategy takes it: when it was under way, and for how long the layer
// stood still for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "strategies/runtime/process_group.h"

namespace stratagem::tensor_parallel {

/// One collective: [transfer->start(), transfer->end()] under way, [wait_start, wait_end] stood
/// still.
struct Exchange {
  runtime::TransferPointer transfer;
  runtime::EventPointer wait_start;
  runtime::EventPointer wait_end;
};

class TensorGroup;

/// An exchange under way; to be waited for once.
class PendingExchange {
 public:
  using Finish = std::function<at::Tensor(const at::Tensor&)>;
  /// `finish` makes the result of what arrived in `buffer`; without it that is the result.
  PendingExchange(TensorGroup& group, runtime::TransferPointer transfer, at::Tensor buffer,
                  Finish finish = {})
      : group_(&group),
        transfer_(std::move(transfer)),
        buffer_(std::move(buffer)),
        finish_(std::move(finish)) {}

  at::Tensor wait();

 private:
  TensorGroup* group_;
  runtime::TransferPointer transfer_;
  at::Tensor buffer_;
  Finish finish_;
};

class TensorGroup {
 public:
  /// `group` and `device`, whose thread runs the layers, outlive this. Without `overlap` whoever
  /// begins an exchange should wait for it at once.
  TensorGroup(runtime::ProcessGroup& group, runtime::Device& device, bool overlap)
      : group_(group), device_(device), overlap_(overlap) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  bool overlap() const { return overlap_; }
  runtime::ProcessGroup& ranks() { return group_; }

  /// The sum, or the largest, of all ranks' tensors, in place of `tensor`, which is contiguous.
  PendingExchange all_reduce(at::Tensor tensor,
                             runtime::Reduction reduction = runtime::Reduction::sum);
  /// All ranks' tensors one after the other along `dimension`.
  PendingExchange all_gather(const at::Tensor& tensor, std::int64_t dimension);
  /// This rank's part, along `dimension`, of the sum of all ranks' tensors. Throws
  /// std::invalid_argument unless the ranks divide the dimension.
  PendingExchange reduce_scatter(const at::Tensor& tensor, std::int64_t dimension);

  /// This rank's part of a tensor that all ranks have. A view.
  at::Tensor own_part(const at::Tensor& tensor, std::int64_t dimension) const;

  /// The exchanges since the last call, in the order in which they were waited for.
  std::vector<Exchange> take_exchanges();

 private:
  friend class PendingExchange;
  void finish(const runtime::TransferPointer& transfer);

  runtime::ProcessGroup& group_;
  runtime::Device& device_;
  bool overlap_;
  std::mutex mutex_;
  std::vector<Exchange> exchanges_;
};

}  // namespace stratagem::tensor_parallel
