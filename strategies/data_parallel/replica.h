// Replica: one stage's layers among their copies on other ranks, kept alike by c10d's Reducer.
//
// The Reducer gathers gradients into buckets while the backward pass runs; each full bucket is
// all-reduced beside it. A loss is weighted with its share of the global batch, so the sum over the
// replicas is the gradient of the global mean, also of shards of different sizes, and nothing has
// to be divided. What is left of the transfers when the backward pass has ended is waited for in an
// action of its own, so that compute and exposed communication can be told apart.
// (Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training".)
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "models/layer.h"
#include "strategies/runtime/process_group.h"
#include "strategies/strategy.h"

namespace c10d {
class Reducer;
}

namespace stratagem::data_parallel {

struct ReplicaOptions {
  double bucket_mebibytes = 25;
  bool overlap = true;
};

/// The all-reduces of one step, in the order of their buckets.
using Buckets = std::vector<runtime::TransferPointer>;

class Replica {
 public:
  /// Takes over parameters and buffers of the group's first rank. Runs on the device's thread, as
  /// all methods do but costs().
  Replica(const models::LayerList& layers, runtime::ProcessGroup& group,
          const ReplicaOptions& options);
  ~Replica();

  bool has_buffers() const { return !buffers_.empty(); }

  /// The first rank's buffers become everyone's, as PyTorch does before each forward pass.
  void broadcast_buffers();
  /// The next backward pass is the last of the step: its gradients are exchanged.
  void before_last_backward();
  /// Returns once the gradients are those of the global batch.
  Buckets wait();

  /// Of one step.
  std::map<std::string, strategies::CollectiveCost> costs() const;

 private:
  class BucketHook;
  void launch(at::Tensor bucket);

  runtime::ProcessGroup& group_;
  ReplicaOptions options_;
  std::vector<at::Tensor> parameters_;
  std::vector<std::vector<at::Tensor>> buffers_;  // by type
  Buckets under_way_;
  std::unique_ptr<c10d::Reducer> reducer_;  // goes before what it refers to
};

}  // namespace stratagem::data_parallel
