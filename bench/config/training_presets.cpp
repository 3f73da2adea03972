// The usual first examples of data-parallel training, in their own sizes.
#include "bench/config/training_command.h"

namespace stratagem::bench {
namespace {

/// Adds what every example has: real targets and one layer.
OptionValues row_of(OptionValues values) {
  values.insert(values.end(), {{"targets", "real"}, {"loss", "mse"}});
  return values;
}

// Trains, validates and tests one layer by Adam on three sets of one size.
TrainingPreset toy_adam() {
  TrainingPreset preset{{"toy_adam", "100 -> 10 by Adam, 1000 samples, validated and tested",
                         row_of({{"model", "linear"},
                                 {"features", "100"},
                                 {"outputs", "10"},
                                 {"optimizer", "adam"},
                                 {"learning_rate", "0.02"},
                                 {"devices", "1"},
                                 {"per_device_batch_size", "32"}})},
                        {}};
  preset.training.samples = 1000;
  preset.training.validation = preset.training.test = -1;
  return preset;
}

// The trainer that is later run on several GPUs, then on several hosts.
TrainingPreset toy_sgd() {
  TrainingPreset preset{{"toy_sgd", "20 -> 1 by SGD, 2048 samples, 5 epochs",
                         row_of({{"model", "linear"},
                                 {"features", "20"},
                                 {"outputs", "1"},
                                 {"learning_rate", "0.01"},
                                 {"devices", "1"},
                                 {"per_device_batch_size", "32"}})},
                        {}};
  preset.training.samples = 2048;
  preset.training.epochs = 5;
  return preset;
}

// Shows the samples that DataParallel gives each device.
TrainingPreset toy_data_parallel() {
  TrainingPreset preset{
      {"toy_data_parallel", "5 -> 2 on two devices of one process, 100 samples in batches of 30",
       row_of({{"strategy", "data_parallel"},
               {"model", "linear"},
               {"features", "5"},
               {"outputs", "2"},
               {"devices", "2"},
               {"global_batch_size", "30"}})},
      {}};
  preset.training.samples = 100;
  preset.show_shapes = true;
  return preset;
}

// The smallest training by DistributedDataParallel.
TrainingPreset toy_ddp() {
  TrainingPreset preset{{"toy_ddp", "10 -> 10 on two ranks, 20 samples each, one step",
                         row_of({{"strategy", "ddp"},
                                 {"model", "linear"},
                                 {"learning_rate", "0.001"},
                                 {"devices", "2"},
                                 {"per_device_batch_size", "20"}})},
                        {}};
  preset.training.samples = 40;
  return preset;
}

}  // namespace

std::span<const TrainingPreset> training_presets() {
  static const std::vector<TrainingPreset> all = {toy_adam(), toy_sgd(), toy_data_parallel(),
                                                  toy_ddp()};
  return all;
}

}  // namespace stratagem::bench
