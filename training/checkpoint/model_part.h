// Finds the tensors of a model in a file, however the writing program wrapped and named them.
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
/// The file holds exactly the wanted tensors, as for load_state_dict(strict=True); only those that
/// end in "num_batches_tracked" may be missing. Throws std::invalid_argument, in one line, with
/// what the file holds instead. The result points into `whole`.
TensorsByName model_tensors(const Value& whole, std::span<const std::string> wanted);

}  // namespace stratagem::checkpoint
