// OwnStages: the stages of a replica that lie on one rank's devices, and what each has of the
// model's state. Where layers have groups, each group is a stage with a FlatGroup.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/stages/flat_group.h"
#include "strategies/stages/stage.h"

namespace stratagem::stages {

class OwnStages {
 public:
  /// `device_of_stage` counts the replica's devices, of which the rank has those from
  /// `first_device` on.
  OwnStages(std::vector<int> device_of_stage, int first_device, runtime::DeviceSpan devices);

  /// Of the replica.
  int count() const { return static_cast<int>(device_of_stage_.size()); }
  const std::vector<int>& device_of_stage() const { return device_of_stage_; }
  /// The rank's stages, ascending.
  const std::vector<int>& list() const { return own_; }
  /// The stage's device, counted among the rank's.
  std::size_t device_of(int stage) const;
  runtime::Device& device(int stage) const { return *devices_[device_of(stage)]; }
  bool on_one_device(int stage, int other) const;

  void add(int index, std::unique_ptr<Stage> stage);
  void add_group(int index, std::unique_ptr<FlatGroup> group);

  bool has(int index) const { return stages_.at(static_cast<std::size_t>(index)) != nullptr; }
  Stage& at(int index) const { return *stages_.at(static_cast<std::size_t>(index)); }
  /// Null without groups of layers, and of another rank's stage.
  FlatGroup* group(int index) const { return groups_.at(static_cast<std::size_t>(index)).get(); }

  /// What the stage holds between two steps of so many micro-batches.
  strategies::StateBytes state_bytes(int index, std::int64_t micro_batches) const;
  /// The squared norm of its gradients, as they are scaled, [] (float64).
  at::Tensor squared_gradient_norm(int index) const;
  /// The name of a parameter whose gradient is not finite; empty: all are.
  std::string not_finite(int index) const;
  /// The gradients of some of its parameters, summed so far: to be changed in place.
  std::vector<at::Tensor> gradients_of(int index, const std::vector<at::Tensor>& parameters) const;

  // Of all the rank's stages, as Strategy has them; whole, as this replica has them.
  void add_state(strategies::StateDictionary& all) const;
  void add_pieces(bool first_replica, bool with_gradients, strategies::StatePieces& all) const;
  void load(const strategies::StateDictionary& state) const;

 private:
  std::vector<int> device_of_stage_;
  int first_device_;
  runtime::DeviceSpan devices_;
  std::vector<int> own_;
  std::vector<std::unique_ptr<Stage>> stages_;      // [stage]; null: another rank's
  std::vector<std::unique_ptr<FlatGroup>> groups_;  // destroyed before their stages
};

}  // namespace stratagem::stages
