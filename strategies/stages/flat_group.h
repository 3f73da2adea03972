// FlatGroup: the parameters of one group of layers as one flat buffer, of which each rank keeps a
// shard or, as in DDP, the whole.
//
// Parameters and their gradients are views of two such buffers, so an all-gather and a
// reduce-scatter move them in place, without a copy in or out. The optimizer trains the shard, one
// tensor, element by element. In mixed precision the shard has the master format and the buffer of
// parameters, which is gathered, the layers' format; gradient_sums.h decides the format of the
// buffer of gradients.
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

/// The storage of a group.
struct FlatOptions {
  /// The ranks over which it is sharded; null: nothing is sharded.
  distributed::ProcessGroup* ranks = nullptr;
  /// The ranks that keep the same shard, or the same whole; null: there are no others.
  distributed::ProcessGroup* copies = nullptr;
  at::ScalarType format = at::kFloat;  // the layers' format
  GradientSums sums = {};              // the ranks' backend decides `exchanged`
  distributed::ReduceScatter reduce_scatter = "exchange";
  bool compressed = false;  // sums over copies are sent as float16
};

class FlatGroup {
 public:
  /// Moves the parameters of `stage` into flat buffers and makes it train this rank's shard. Stage
  /// and ranks must outlive it. Runs on the device's thread, like all methods except costs, state
  /// and load.
  FlatGroup(Stage& stage, const FlatOptions& options);

  bool empty() const { return parameters_.empty(); }

  /// Starts gathering the parameters, which have memory from here on.
  void unshard();
  /// Returns once the parameters are whole.
  distributed::TransferPointer wait_for_parameters();
  /// Frees the memory of sharded parameters.
  void reshard();
  /// Frees the memory of a shard's gradient that an update has used.
  void before_forward();
  void before_backward();
  /// Adds the gradients of a pass to the buffer or, if nothing is sharded, the shard's. A step has
  /// `micro_batches` of them.
  void after_backward(std::int64_t micro_batches);
  /// Returns the present sums of some parameters' gradients, which the caller may change in place.
  std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) const;
  /// Starts summing the gradients over the ranks, in a step of `micro_batches` micro-batches.
  void reduce_scatter(std::int64_t micro_batches);
  /// Returns once the shard has the sum.
  distributed::TransferPointer wait_for_gradients();
  /// Starts summing the shard's gradient over its copies.
  void all_reduce();
  /// Returns once the shard has that sum.
  distributed::TransferPointer wait_for_sum();
  /// Returns the sum of the squares of the shard's gradients, [] (float64). An element that several
  /// ranks of a tensor-parallel group have counts once.
  at::Tensor squared_gradient_norm() const;
  /// Publishes the updated shard.
  void publish();

  /// Returns a parameter whose gradient on this rank is not finite; empty if all are finite.
  std::string not_finite() const;

  /// Return calls and bytes of one U, of one RS in a step of `micro_batches`, of one AS.
  distributed::CollectiveCount gather_cost() const;
  distributed::CollectiveCount scatter_cost(std::int64_t micro_batches) const;
  distributed::CollectiveCount all_reduce_cost() const;

  /// Returns the bytes of state on this rank between two uses, padding included, in a step of
  /// `micro_batches`. Tensors gathered, or made to be scattered, are communication.
  strategies::StateBytes state_bytes(std::int64_t micro_batches) const;

  /// Adds whole copies of parameters, gradients and optimizer state. Collective.
  void add_state(strategies::StateDictionary& all) const;
  /// Adds the runs of parameters, optimizer state and, on demand, gradients in this rank's shard,
  /// unless it is a copy; on the first replica also the entries that every replica has whole.
  void add_pieces(bool first_replica, bool with_gradients, strategies::StatePieces& all) const;
  /// Loads this rank's part of parameters and optimizer state. Throws std::invalid_argument for a
  /// missing entry or another shape.
  void load(const strategies::StateDictionary& state);

 private:
  struct Scatter {
    at::Tensor whole;  // sent
    at::Tensor shard;  // arrives
    distributed::TransferPointer transfer;
  };
  /// A sum of the shard's gradients over its copies.
  struct Sum {
    at::Tensor sent;  // the gradient itself, or a rounded copy that becomes the sum
    distributed::TransferPointer transfer;
  };

  std::vector<models::NamedTensor> make_flat();
  at::Tensor own_shard_of(const at::Tensor& whole) const;
  at::Tensor view_of(const at::Tensor& flat, std::size_t parameter) const;
  at::Tensor whole_of(const at::Tensor& shard) const;
  at::Tensor flattened(const strategies::StateDictionary& state, const std::string& prefix) const;
  Range counted_part_of(std::size_t parameter) const;
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
  std::size_t bytes_ = 0;      // the size of a whole buffer
  at::Tensor whole_;           // [size]; no memory while parameters are sharded and not in use
  at::Tensor shard_;           // [shard size], trained; a part of whole_ if that stays
  at::Tensor sent_;            // [shard size], gathered by others: the shard, in the layers' format
  at::Tensor whole_gradient_;  // [size]; undefined if there is none, or nothing is sharded
  bool gradients_are_old_ = true;  // the parameters' gradients are the last step's
  bool sum_is_old_ = true;         // whole_gradient_ was scattered
  bool updated_ = false;
  distributed::TransferPointer gather_;
  Scatter scatter_;
  Sum sum_;  // the sum over copies in flight
};

}  // namespace stratagem::stages
