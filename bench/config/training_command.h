// The options of `train` on the command line: those of a row, without what says how `run` measures,
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

/// What a training must reach, for CI: a loss of at most, or an accuracy of at least, `value`.
struct Requirement {
  enum class Kind { none, loss, accuracy };
  Kind kind = Kind::none;
  double value = 0;

  /// "loss:0.5" or "accuracy:0.97"; empty is none. Throws std::invalid_argument.
  static Requirement parse(const std::string& text);
};

struct TrainOptions {
  RunOptions row;  // and preset, config, files
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

/// `options` must outlive `app`. Those of the training begin with what they are: a preset's, or the
/// defaults.
void add_train_options(CLI::App& app, TrainOptions& options, const Catalogue& catalogue);

/// Throws std::invalid_argument for an option that was typed and that nothing reads: what belongs
/// to checkpoints without a folder for them, to a validation without one, to other data.
void refuse_unused(const CLI::App& app, const TrainOptions& options,
                   const datasets::DatasetEntry& data, const datasets::SampleFormat& format);

/// The value of --preset among the arguments; empty where there is none. Throws
/// std::invalid_argument with the nearest name.
const TrainingPreset* preset_among(std::span<const std::string> arguments);

}  // namespace stratagem::bench
