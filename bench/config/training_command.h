// The options of `train` on the command line: those of a row, without those of how `run` measures,
// and those of the training.
#pragma once

#include <span>
#include <string>

#include "bench/config/catalogue.h"
#include "bench/config/presets.h"
#include "bench/config/run_options.h"
#include "models/datasets/registry.h"
#include "training/options.h"

namespace CLI {
class App;
}

namespace stratagem::bench {

/// The goal of a training, for CI: a loss of at most, or an accuracy of at least, `value`.
struct Requirement {
  enum class Kind { none, loss, accuracy };
  Kind kind = Kind::none;
  double value = 0;

  /// Parses "loss:0.5" or "accuracy:0.97". Throws std::invalid_argument.
  static Requirement parse(const std::string& text);
};

struct TrainOptions {
  RunOptions row;  // with preset, config and files
  training::TrainingOptions training;
  Requirement requirement;
  std::string resume = "none";  // auto, none, or a checkpoint's path
  bool show_shapes = false;
};

/// An example from the documentation of data-parallel training.
struct TrainingPreset {
  Preset row;
  training::TrainingOptions training;
  bool show_shapes = false;
};

std::span<const TrainingPreset> training_presets();

/// Adds the options to `app`, which `options` must outlive. The training's options begin with their
/// present values: a preset's, or the defaults.
void add_train_options(CLI::App& app, TrainOptions& options, const Catalogue& catalogue);

/// Throws std::invalid_argument for a typed option that nothing reads: one of checkpoints without a
/// folder for them, of a validation without one, of other data.
void refuse_unused(const CLI::App& app, const TrainOptions& options,
                   const datasets::DatasetEntry& data, const datasets::SampleFormat& format);

/// Returns the preset of --preset among the arguments; null if there is none. Throws
/// std::invalid_argument with the nearest name.
const TrainingPreset* preset_among(std::span<const std::string> arguments);

}  // namespace stratagem::bench
