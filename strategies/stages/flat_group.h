// FlatGroup: the parameters of one group of layers as one flat buffer, of which each rank keeps a
// shard or, as in DDP, the whole.
//
// Parameters and their gradients are views of two such buffers, so an all-gather and a
// reduce-scatter move them as they lie, with no copy in or out. What is trained is the shard, one
// tensor, by an optimizer that works element by element. In mixed precision the shard is of the
// master format and the buffer of parameters, which is gathered, of the layers'; gradient_sums.h
// says of which format the buffer of gradients is.
// (Rajbhandari et al. 2020, "ZeRO"; Zhao et al. 2023, "PyTorch FSDP", section 3.2, FlatParameter;
// Micikevicius et al. 2018, "Mixed Precision Training", section 3.1.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/distributed/process_group.h"
#include "strategies/stages/flat_layout.h"
#include "strategies/stages/gradient_sums.h"
#include "strategies/stages/stage.h"
#include "strategies/state.h"

namespace stratagem::stages {

/// How a group is kept.
struct FlatOptions {
  /// Over which it is sharded; null: nothing is.
  distributed::ProcessGroup* ranks = nullptr;
  /// Ranks that keep the same shard, or the same whole; null: there are no others.
  distributed::ProcessGroup* copies = nullptr;
  at::ScalarType format = at::kFloat;  // of what layers compute with
  GradientSums sums = {};              // `exchanged` follows from the ranks' backend
  distributed::ReduceScatter reduce_scatter = "exchange";
  bool compressed = false;  // what is summed over copies is sent as float16
};

class FlatGroup {
 public:
  /// Moves the parameters of `stage` into flat buffers and makes it train this rank's shard. Stage
  /// and ranks outlive it. Runs on the device's thread, as all methods do but costs, state and
  /// load.
  FlatGroup(Stage& stage, const FlatOptions& options);

  bool empty() const { return parameters_.empty(); }

  /// Starts gathering the parameters; they have memory from here on.
  void unshard();
  /// Returns once they are whole.
  distributed::TransferPointer wait_for_parameters();
  /// Gives back the memory of parameters that are sharded.
  void reshard();
  /// Takes away the memory of a shard's gradient that an update has used.
  void before_forward();
  void before_backward();
  /// Adds the gradients of a pass to the buffer or, where nothing is sharded, the shard's. A step
  /// has so many micro-batches.
  void after_backward(std::int64_t micro_batches);
  /// Those of some of the stage's parameters, as they are summed so far: to be changed in place.
  std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) const;
  /// Starts summing the gradients over the ranks, in a step of so many micro-batches.
  void reduce_scatter(std::int64_t micro_batches);
  /// Returns once the shard has the sum.
  distributed::TransferPointer wait_for_gradients();
  /// Starts adding the shard's gradient to those of its copies.
  void all_reduce();
  /// Returns once it has their sum.
  distributed::TransferPointer wait_for_sum();
  /// The squares of the shard's gradients, summed, [] (float64); of each element that several ranks
  /// of a tensor-parallel group have, once.
  at::Tensor squared_gradient_norm() const;
  /// The shard was updated.
  void publish();

  /// The name of a parameter whose gradient on this rank is not finite; empty: all are.
  std::string not_finite() const;

  /// Return calls and bytes of one U, of one RS in a step of so many micro-batches, of one AS.
  distributed::CollectiveCount gather_cost() const;
  distributed::CollectiveCount scatter_cost(std::int64_t micro_batches) const;
  distributed::CollectiveCount all_reduce_cost() const;

  /// What this rank holds of the state between two uses of it, padding included, where a step has
  /// so many micro-batches. What is gathered, or made to be scattered, is communication.
  strategies::StateBytes state_bytes(std::int64_t micro_batches) const;

  /// Copies of parameters, gradients and optimizer state, whole. Collective.
  void add_state(strategies::StateDictionary& all) const;
  /// Adds the runs of parameters, optimizer state and, on demand, gradients in this rank's shard,
  /// unless it is another one's copy; of the first replica also what is whole on every one.
  void add_pieces(bool first_replica, bool with_gradients, strategies::StatePieces& all) const;
  /// Takes this rank's part of parameters and optimizer state. Throws std::invalid_argument for a
  /// missing entry or another shape.
  void load(const strategies::StateDictionary& state);

 private:
  struct Scatter {
    at::Tensor whole;  // sent
    at::Tensor shard;  // arrives
    distributed::TransferPointer transfer;
  };
  /// Of the shard's gradients and those of its copies.
  struct Sum {
    at::Tensor sent;  // the gradient itself, or a rounded copy that becomes the sum
    distributed::TransferPointer transfer;
  };

  std::vector<models::NamedTensor> make_flat();
  at::Tensor own_shard_of(const at::Tensor& whole) const;
  at::Tensor view_of(const at::Tensor& flat, std::size_t parameter) const;
  at::Tensor whole_of(const at::Tensor& shard) const;
  at::Tensor flattened(const strategies::StateDictionary& state, const std::string& prefix) const;
  void add_runs(const std::string& prefix, const at::Tensor& shard,
                strategies::StatePieces& all) const;
  void add_views(const std::string& prefix, const at::Tensor& shard,
                 strategies::StateDictionary& all) const;
  at::Tensor empty_buffer(const at::TensorOptions& options) const;
  std::int64_t whole_gradient_bytes(std::int64_t micro_batches) const;
  bool rounds_sums() const { return options_.sums.mixed && !options_.sums.in_master; }
  at::ScalarType sent_format() const;

  bool is_sharded() const { return options_.sums.is_sharded(); }
  bool keeps_parameters() const { return options_.sums.sharded < "parameters"; }
  bool keeps_gradients() const { return options_.sums.keeps_gradients(); }
  int shards() const { return is_sharded() ? options_.ranks->size() : 1; }
  int own() const { return is_sharded() ? options_.ranks->rank() : 0; }

  Stage& stage_;
  FlatOptions options_;
  std::vector<models::NamedTensor> parameters_;
  FlatLayout layout_;
  std::size_t bytes_ = 0;      // of a whole buffer
  at::Tensor whole_;           // [size]; while parameters are sharded and not in use, no memory
  at::Tensor shard_;           // [shard size], trained; a part of whole_ where that stays
  at::Tensor sent_;            // [shard size], what others gather: the shard, in the layers' format
  at::Tensor whole_gradient_;  // [size]; undefined while there is none, or nothing is sharded
  bool gradients_are_old_ = true;  // those of the parameters
  bool sum_is_old_ = true;         // what whole_gradient_ holds was scattered
  bool updated_ = false;
  distributed::TransferPointer gather_;
  Scatter scatter_;
  Sum sum_;  // over copies
};

}  // namespace stratagem::stages
