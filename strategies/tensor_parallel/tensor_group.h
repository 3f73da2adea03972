// TensorGroup: the collectives of layers that share a matrix, and a record of them for the
// timeline.
//
// A collective is begun and, where something else can be computed meanwhile, waited for later.
// Every collective is kept until the strategy takes it: when it was in flight, and for how long the
// layer waited for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "strategies/distributed/process_group.h"

namespace stratagem::tensor_parallel {

/// One collective: [transfer->start(), transfer->end()] in flight, [wait_start, wait_end] stood
/// still.
struct LayerCollective {
  distributed::TransferPointer transfer;
  runtime::EventPointer wait_start;
  runtime::EventPointer wait_end;
};

class TensorGroup;

/// A collective in flight; to be waited for once.
class PendingCollective {
 public:
  using Finish = std::function<at::Tensor(const at::Tensor&)>;
  /// `finish` makes the result of what arrived in `buffer`; without it that is the result.
  PendingCollective(TensorGroup& group, distributed::TransferPointer transfer, at::Tensor buffer,
                    Finish finish = {})
      : group_(&group),
        transfer_(std::move(transfer)),
        buffer_(std::move(buffer)),
        finish_(std::move(finish)) {}

  at::Tensor wait();

 private:
  TensorGroup* group_;
  distributed::TransferPointer transfer_;
  at::Tensor buffer_;
  Finish finish_;
};

/// How layers use the collectives.
struct ExchangeOptions {
  bool overlap = true;         // else whoever begins one should wait for it at once
  bool keep_gathered = false;  // inputs that were gathered by sequence stay for the backward pass;
                               // else they are gathered again there
  distributed::ReduceScatter reduce_scatter = "exchange";
};

class TensorGroup {
 public:
  /// `group` and `device`, whose thread runs the layers, outlive this.
  TensorGroup(distributed::ProcessGroup& group, runtime::Device& device,
              const ExchangeOptions& options)
      : group_(group), device_(device), options_(options) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  const ExchangeOptions& options() const { return options_; }
  distributed::ProcessGroup& ranks() { return group_; }

  /// The sum, or the largest, of all ranks' tensors, in place of `tensor`, which is contiguous.
  PendingCollective all_reduce(at::Tensor tensor,
                               distributed::Reduction reduction = distributed::Reduction::sum);
  /// All ranks' tensors one after the other along `dimension`.
  PendingCollective all_gather(const at::Tensor& tensor, std::int64_t dimension);
  /// This rank's part, along `dimension`, of the sum of all ranks' tensors. Throws
  /// std::invalid_argument unless the ranks divide the dimension.
  PendingCollective reduce_scatter(const at::Tensor& tensor, std::int64_t dimension);

  /// This rank's part of a tensor that all ranks have. A view.
  at::Tensor own_part(const at::Tensor& tensor, std::int64_t dimension) const;

  /// The collectives since the last call, in the order in which they were waited for.
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

}  // namespace stratagem::tensor_parallel
