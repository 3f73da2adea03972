// What a strategy holds, by the names of the single-device model.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace stratagem::strategies {

/// Parameters, buffers, "optimizer.<...>" and "gradient.<parameter>" entries, on the CPU, under the
/// names of the single-device model; where the loss is scaled dynamically, its scaler's
/// (models::LossScale).
using StateDictionary = std::map<std::string, at::Tensor>;

}  // namespace stratagem::strategies
