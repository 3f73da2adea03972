// The tensors of a checkpoint by their names: ours, and those of torch.optim.
#pragma once

#include <string>
#include <vector>

#include "models/workload.h"

namespace stratagem::training {

inline constexpr const char* checkpoint_format = "stratagem/checkpoint-1";
/// The record of an archive that holds the pickle.
inline constexpr const char* pickle_record = "data.pkl";
/// The loss scaler's counts: GradScaler's name of the good steps, Megatron-LM's of the overflows.
inline constexpr const char* growth_tracker = "_growth_tracker";
inline constexpr const char* hysteresis_tracker = "_hysteresis_tracker";

/// The model's tensors in the order of its layers, which is that of torch.optim's indices.
struct CheckpointNames {
  std::vector<models::NamedTensor> parameters;
  std::vector<models::NamedTensor> buffers;

  explicit CheckpointNames(const models::Workload& workload);
};

/// What torch.optim calls the entries of a parameter's state.
std::vector<std::string> optimizer_entries(const models::OptimizerOptions& options);

/// How we call one: "exp_avg" is "optimizer.exp_avg.NAME".
std::string own_name(const std::string& entry, const std::string& parameter);

}  // namespace stratagem::training
