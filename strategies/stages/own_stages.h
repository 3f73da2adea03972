// OwnStages: the stages of a replica on one rank's devices and their parts of the model's state. If
// layers have groups, each group is a stage with a FlatGroup.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/stages/flat_group.h"
#include "strategies/stages/stage.h"

namespace stratagem::stages {

class OwnStages {
 public:
  /// `device_of_stage` counts the replica's devices; the rank's begin at `first_device`.
  OwnStages(std::vector<int> device_of_stage, int first_device, runtime::DeviceSpan devices);

  /// Returns the number of the replica's stages.
  int count() const { return static_cast<int>(device_of_stage_.size()); }
  const std::vector<int>& device_of_stage() const { return device_of_stage_; }
  /// Returns the rank's stages, ascending.
  const std::vector<int>& list() const { return own_; }
  /// Returns the stage's device, counted among the rank's.
  std::size_t device_of(int stage) const;
  runtime::Device& device(int stage) const { return *devices_[device_of(stage)]; }
  bool on_one_device(int stage, int other) const;

  void add(int index, std::unique_ptr<Stage> stage);
  void add_group(int index, std::unique_ptr<FlatGroup> group);

  bool has(int index) const { return stages_.at(static_cast<std::size_t>(index)) != nullptr; }
  Stage& at(int index) const { return *stages_.at(static_cast<std::size_t>(index)); }
  /// Returns null without groups of layers, and for another rank's stage.
  FlatGroup* group(int index) const { return groups_.at(static_cast<std::size_t>(index)).get(); }

  /// Returns the stage's bytes between two steps of `micro_batches`.
  strategies::StateBytes state_bytes(int index, std::int64_t micro_batches) const;
  /// Returns the squared norm of its gradients, still scaled, [] (float64).
  at::Tensor squared_gradient_norm(int index) const;
  /// Returns a parameter whose gradient is not finite; empty if all are finite.
  std::string not_finite(int index) const;
  /// Returns the present sums of some parameters' gradients, which the caller may change in place.
  std::vector<at::Tensor> gradients_of(int index, const std::vector<at::Tensor>& parameters) const;

  // The state of all the rank's stages, for Strategy's methods; whole entries are this replica's.
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
