// The tensors of a model among what a file holds, however its program wrapped and named them.
#pragma once

#include <map>
#include <span>
#include <string>

#include "training/checkpoint/pickled_value.h"

namespace stratagem::checkpoint {

using TensorsByName = std::map<std::string, const PickledTensor*, std::less<>>;

/// Finds the wanted tensors in a state_dict(), or in a dictionary that has one under "model",
/// "state_dict", "model_state_dict" or "module". The names in the file may all begin with one more
/// prefix ("module.", "model."), and hold "_orig_mod." and other wrappers of torch anywhere.
///
/// As load_state_dict(strict=True) has it, the file holds every wanted tensor, but for those that
/// end in "num_batches_tracked", and no other. Throws std::invalid_argument with what it holds
/// instead, in one line. The result points into `whole`.
TensorsByName model_tensors(const Value& whole, std::span<const std::string> wanted);

}  // namespace stratagem::checkpoint
