// Updates: what a step does with the gradients of one rank's stages: their norm, clipping, the loss
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

/// Of one step.
struct GradientNorms {
  GradientNorms(std::size_t stages, std::size_t devices)
      : of_stage(stages), scales(devices, 1), scale_is_settled(devices, 0) {}

  std::vector<at::Tensor> of_stage;  // [stage], squared; of this rank's
  at::Tensor summed = {};            // of all ranks of the replica, squared, where it has several
  NumberReadOnce on_host = {};       // the one or the sum of the others
  double norm = 0;
  bool skipped = false;  // the gradients were not finite
  // [own device]: what its losses were multiplied by, and whether that was reconsidered since.
  std::vector<double> scales;
  std::vector<char> scale_is_settled;
};

class Updates {
 public:
  /// `ranks` have parts of the norm; null: no others have. All outlive it.
  Updates(const models::WorkloadOptions& options, const OwnStages& stages, std::size_t devices,
          distributed::ProcessGroup* ranks);

  bool clips() const { return options_.optimizer.clip_norm > 0; }
  bool scales() const { return options_.loss_scale != 1; }
  /// What the losses on the stage's device are multiplied by.
  double scale(int stage) const { return scales_[stages_.device_of(stage)].value(); }

  // What the actions gradient_norm, norm_sum and optimizer do; on the device's thread.
  void take_norm(int stage, GradientNorms& norms) const;
  void sum_norms(int stage, GradientNorms& norms) const;
  void update(int stage, double learning_rate, GradientNorms& norms);

  /// Of the loss scale, which is alike on all devices and ranks; empty where it is fixed.
  strategies::StateDictionary state() const;
  /// One that the state lacks starts afresh, as an optimizer's does.
  void load(const strategies::StateDictionary& state);

 private:
  models::LossScale first_scale() const;
  double squared_norm(int stage, GradientNorms& norms) const;
  void update_scaled(int stage, GradientNorms& norms);
  void settle_scale(int stage, bool finite, GradientNorms& norms);

  const models::WorkloadOptions& options_;
  const OwnStages& stages_;
  distributed::ProcessGroup* ranks_;
  std::vector<models::LossScale> scales_;  // [own device]: alike on all, each its thread's own
};

}  // namespace stratagem::stages
