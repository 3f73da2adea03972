// Replica: one stage's layers among their copies on other ranks, kept alike by c10d's Reducer.
//
// The Reducer gathers gradients into buckets while the backward pass runs; each full bucket is
// all-reduced meanwhile. A loss is weighted with its share of the global batch, so the sum over the
// replicas is the gradient of the global mean, also of shards of different sizes, and nothing has
// to be divided. What is left of the transfers when the backward pass has ended is waited for in an
// action of its own, so that compute and exposed communication can be told apart.
// (Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training".)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/layer.h"
#include "strategies/distributed/process_group.h"
#include "strategies/strategy.h"

namespace c10d {
class Reducer;
}

namespace stratagem::data_parallel {

/// The all-reduces of one step, in the order of their buckets.
using BucketTransfers = std::vector<distributed::TransferPointer>;

/// A bucket as the Reducer will make it.
struct PlannedBucket {
  std::int64_t bytes = 0;  // as sent
  double ready = 1;        // when it is full, as a fraction of the backward pass's FLOPs
};

/// In the order in which they become full. `input` is the shape of the layers' input;
/// `first_stage`: nobody wants its gradient.
std::vector<PlannedBucket> plan_buckets(const models::LayerList& layers, const models::Shape& input,
                                        bool first_stage,
                                        const strategies::StrategyOptions& options);

class Replica {
 public:
  /// Takes over parameters and buffers of the group's first rank. Runs on the device's thread, as
  /// all methods do but costs().
  Replica(const models::LayerList& layers, distributed::ProcessGroup& group,
          const strategies::StrategyOptions& options);
  ~Replica();

  /// The first rank's buffers become everyone's, as PyTorch does before each forward pass.
  void broadcast_buffers();
  /// The next backward pass is the last of the step: its gradients are exchanged.
  void before_last_backward();
  /// Returns once the gradients are those of the global batch.
  BucketTransfers wait();

  /// Of one step.
  strategies::CommunicationCounts costs() const;
  /// Of all its parameters.
  std::int64_t gradient_bytes() const;

 private:
  class BucketHook;
  /// Gradients on their way.
  struct Bucket {
    at::Tensor gradients;  // the Reducer's
    at::Tensor sent;       // the same, or their compressed copy
    distributed::TransferPointer transfer;
  };
  void launch(const at::Tensor& gradients);
  void retag_buckets();

  distributed::ProcessGroup& group_;
  strategies::StrategyOptions options_;
  std::vector<at::Tensor> parameters_;
  std::vector<std::vector<at::Tensor>> buffers_;  // by type
  std::vector<Bucket> in_flight_;
  std::unique_ptr<c10d::Reducer> reducer_;  // goes before what it refers to
};

}  // namespace stratagem::data_parallel
