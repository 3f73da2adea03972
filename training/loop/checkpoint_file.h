// A checkpoint as a file for Python's torch.load with its defaults: the model's state for
// load_state_dict, the optimizer's for torch.optim's, and the training's position.
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
  std::string work = {};  // JSON: the options that a resumed training must keep
};

/// The content of a checkpoint beside the state.
struct CheckpointNotes {
  Position position = {};
  /// The learning rate of the next step, if a schedule sets it.
  std::optional<double> scheduled_rate = {};
  std::string work = {};  // see Checkpoint::work
};

/// Reads one entry of the state at a time. The file appears whole or not at all. Throws
/// std::system_error, and like StateReader::read().
void write_checkpoint(const std::filesystem::path& path, const CheckpointNotes& notes,
                      distributed::StateReader& state, const models::Workload& workload);

/// Throws std::invalid_argument, in one line that begins with the path, if the file is not a
/// checkpoint or belongs to another model or optimizer.
Checkpoint read_checkpoint(const std::filesystem::path& path, const models::Workload& workload);

/// Reads only Checkpoint::work. Throws like read_checkpoint().
std::string read_work(const std::filesystem::path& path);

/// Reads only parameters and buffers, from a checkpoint or a file of Python's torch.save: a model's
/// state_dict(), or a dictionary with one under "model". Throws like read_checkpoint().
strategies::StateDictionary read_model(const std::filesystem::path& path,
                                       const models::Workload& workload);

}  // namespace stratagem::training
