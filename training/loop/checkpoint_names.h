// The names of a checkpoint's tensors: Stratagem's and torch.optim's.
#pragma once

#include <string>
#include <vector>

#include "models/workload.h"

namespace stratagem::training {

inline constexpr const char* checkpoint_format = "stratagem/checkpoint-1";
/// The record of an archive that holds the pickle.
inline constexpr const char* pickle_record = "data.pkl";
/// The loss scaler's counts: GradScaler's name for good steps, Megatron-LM's for overflows.
inline constexpr const char* growth_tracker = "_growth_tracker";
inline constexpr const char* hysteresis_tracker = "_hysteresis_tracker";

/// The model's tensors in the order of its layers, which is also that of torch.optim's indices.
struct CheckpointNames {
  std::vector<models::NamedTensor> parameters;
  std::vector<models::NamedTensor> buffers;

  explicit CheckpointNames(const models::Workload& workload);
};

/// Returns torch.optim's names for the entries of a parameter's state.
std::vector<std::string> optimizer_entries(const models::OptimizerOptions& options);

/// Returns Stratagem's name: "optimizer.exp_avg.NAME" for "exp_avg".
std::string own_name(const std::string& entry, const std::string& parameter);

}  // namespace stratagem::training
