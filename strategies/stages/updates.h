// Updates: the use of the gradients of one rank's stages in a step: their norm, clipping, the loss
// scale and the update.
#pragma once

#include <string>
#include <vector>

#include "models/loss_scale.h"
#include "models/workload.h"
#include "strategies/distributed/process_group.h"
#include "strategies/stages/own_stages.h"
#include "strategies/stages/squared_norm.h"

namespace stratagem::stages {

/// The norms of one step's gradients.
struct GradientNorms {
  GradientNorms(std::size_t stages, std::size_t devices)
      : of_stage(stages), scales(devices, 1), scale_is_settled(devices, 0) {}

  std::vector<at::Tensor> of_stage;  // [stage], squared; this rank's
  at::Tensor summed = {};            // the squared norm of the replica, if it has several ranks
  NumberReadOnce on_host = {};       // the sum of the squared norms
  double norm = 0;
  bool skipped = false;  // the gradients were not finite
  // [own device]: the factor of its losses; a nonzero flag once it was reconsidered.
  std::vector<double> scales;
  std::vector<char> scale_is_settled;
};

class Updates {
 public:
  /// `ranks` have parts of the norm; null: this rank has all. All must outlive it.
  Updates(const models::WorkloadOptions& options, const OwnStages& stages, std::size_t devices,
          distributed::ProcessGroup* ranks);

  bool clips() const { return options_.optimizer.clip_norm > 0; }
  bool scales() const { return options_.loss_scale != 1; }
  /// Returns the factor of the losses on the stage's device.
  double scale(int stage) const { return scales_[stages_.device_of(stage)].value(); }

  // The actions gradient_norm, norm_sum and optimizer, on the device's thread.
  void take_norm(int stage, GradientNorms& norms) const;
  void sum_norms(int stage, GradientNorms& norms) const;
  void update(int stage, double learning_rate, GradientNorms& norms);

  /// Returns the loss scale's state, equal on all devices and ranks; empty if it is fixed.
  strategies::StateDictionary state() const;
  /// A scale that the state lacks starts afresh, like an optimizer.
  void load(const strategies::StateDictionary& state);

 private:
  models::LossScale first_scale() const;
  double squared_norm(int stage, GradientNorms& norms) const;
  void update_scaled(int stage, GradientNorms& norms);
  void settle_scale(int stage, bool finite, GradientNorms& norms);

  const models::WorkloadOptions& options_;
  const OwnStages& stages_;
  distributed::ProcessGroup* ranks_;
  std::vector<models::LossScale> scales_;  // [own device]: equal on all, one for each thread
};

}  // namespace stratagem::stages
