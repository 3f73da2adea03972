// A checkpoint as a file that Python's torch.load reads with its defaults: the model's state as
// load_state_dict takes it, the optimizer's as torch.optim's does, and where the training stood.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "models/workload.h"
#include "strategies/state.h"
#include "training/position.h"

namespace stratagem::training {

struct Checkpoint {
  strategies::StateDictionary state = {};  // parameters, buffers, optimizer, loss scaler
  Position position = {};
  /// The learning rate of the next step, where a schedule sets it. It is written, not read.
  std::optional<double> scheduled_rate = {};
  std::string work = {};  // JSON: what must be the same when it goes on
};

/// The file is there whole or not at all. Throws std::system_error.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                      const models::Workload& workload);

/// Throws std::invalid_argument, in one line that begins with the path, for a file that is no
/// checkpoint, or one of another model or optimizer.
Checkpoint read_checkpoint(const std::filesystem::path& path, const models::Workload& workload);

/// Parameters and buffers alone, of a checkpoint or of what Python's torch.save wrote: a model's
/// state_dict(), or a dictionary with one under "model". Throws likewise.
strategies::StateDictionary read_model(const std::filesystem::path& path,
                                       const models::Workload& workload);

}  // namespace stratagem::training
