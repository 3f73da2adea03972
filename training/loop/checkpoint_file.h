// A checkpoint as a file that Python's torch.load reads with its defaults: the model's state as
// load_state_dict takes it, the optimizer's as torch.optim's does, and where the training stood.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "models/workload.h"
#include "strategies/distributed/state_reader.h"
#include "strategies/state.h"
#include "training/position.h"

namespace stratagem::training {

struct Checkpoint {
  strategies::StateDictionary state = {};  // parameters, buffers, optimizer, loss scaler
  Position position = {};
  std::string work = {};  // JSON: what must be the same when it goes on
};

/// What a checkpoint has beside the state.
struct CheckpointNotes {
  Position position = {};
  /// The learning rate of the next step, where a schedule sets it.
  std::optional<double> scheduled_rate = {};
  std::string work = {};  // as Checkpoint::work
};

/// Reads one entry of the state at a time. The file is there whole or not at all. Throws
/// std::system_error, and as StateReader::read().
void write_checkpoint(const std::filesystem::path& path, const CheckpointNotes& notes,
                      distributed::StateReader& state, const models::Workload& workload);

/// Throws std::invalid_argument, in one line that begins with the path, for a file that is no
/// checkpoint, or one of another model or optimizer.
Checkpoint read_checkpoint(const std::filesystem::path& path, const models::Workload& workload);

/// Reads Checkpoint::work and no tensor. Throws as read_checkpoint() does.
std::string read_work(const std::filesystem::path& path);

/// Parameters and buffers alone, of a checkpoint or of what Python's torch.save wrote: a model's
/// state_dict(), or a dictionary with one under "model". Throws likewise.
strategies::StateDictionary read_model(const std::filesystem::path& path,
                                       const models::Workload& workload);

}  // namespace stratagem::training
