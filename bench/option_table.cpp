// The table of options. Its order is the order of the help, of the results and of row names.
#include "bench/options.h"

namespace stratagem::bench {
namespace {

constexpr double most_devices = 1024;
constexpr Bounds positive_count = {1};
constexpr Bounds more_than_zero = {.low = 0, .low_excluded = true};
constexpr Bounds zero_or_more = {0};

std::vector<Option> device_options() {
  constexpr OptionGroup group = OptionGroup::device;
  return {{.name = "device",
           .flag = "--device",
           .member = &Config::device,
           .group = group,
           .meaning = "kind of device",
           .choices = Choices::listed,
           .listed = {"cpu", "cuda"}},
          {.name = "devices",
           .flag = "--devices",
           .member = &Config::devices,
           .group = group,
           .meaning = "the job's devices in all; a strategy for one device uses the first",
           .bounds = {1, most_devices}},
          {.name = "device_ids",
           .flag = "--device-ids",
           .member = &Config::device_ids,
           .group = group,
           .meaning = "which devices, joined by +; one named twice is shared",
           .bounds = zero_or_more},
          {.name = "cores_per_device",
           .flag = "--cores-per-device",
           .member = &Config::cores_per_device,
           .group = group,
           .used_when = UsedWhen::on_cpu,
           .meaning = "cores of each CPU device",
           .bounds = {1, most_devices},
           .row_name_key = "cores"},
          {.name = "oversubscribe",
           .flag = "--oversubscribe",
           .member = &Config::oversubscribe,
           .group = group,
           .used_when = UsedWhen::on_cpu,
           .meaning = "allow more CPU devices than cores; such rows are marked",
           .is_switch = true},
          {.name = "timeout",
           .flag = "--timeout",
           .member = &Config::timeout,
           .group = group,
           .meaning = "limit of each action, and of waiting for cores in use",
           .unit = "seconds",
           .bounds = more_than_zero,
           .in_row_name = false}};
}

std::vector<Option> work_options() {
  constexpr OptionGroup group = OptionGroup::work;
  return {{.name = "strategy",
           .flag = "--strategy",
           .member = &Config::strategy,
           .group = group,
           .meaning = "how the model is trained",
           .choices = Choices::strategies},
          {.name = "model",
           .flag = "--model",
           .member = &Config::model,
           .group = group,
           .meaning = "what is trained",
           .choices = Choices::models},
          {.name = "global_batch_size",
           .flag = "--global-batch-size",
           .member = &Config::global_batch_size,
           .group = group,
           .meaning = "batch of one step, over all devices",
           .unit = "samples",
           .bounds = positive_count,
           .row_name_key = "batch"},
          {.name = "image_size",
           .flag = "--image-size",
           .member = &Config::image_size,
           .group = group,
           .used_when = UsedWhen::model_has_images,
           .meaning = "side of the square images",
           .unit = "pixels",
           .bounds = positive_count,
           .row_name_key = "image"},
          {.name = "split_size",
           .flag = "--split-size",
           .member = &Config::split_size,
           .group = group,
           .used_when = UsedWhen::strategy_says,
           .meaning = "size of a micro-batch",
           .unit = "samples",
           .bounds = positive_count,
           .row_name_key = "split"},
          {.name = "schedule",
           .flag = "--schedule",
           .member = &Config::schedule,
           .group = group,
           .used_when = UsedWhen::strategy_says,
           .meaning = "order of forwards and backwards on the stages",
           .choices = Choices::schedules},
          {.name = "cut",
           .flag = "--cut",
           .member = &Config::cut,
           .group = group,
           .used_when = UsedWhen::strategy_says,
           .meaning = "layers that begin the stages after the first, joined by +"},
          {.name = "partition",
           .flag = "--partition",
           .member = &Config::partition,
           .group = group,
           .used_when = UsedWhen::strategy_says,
           .meaning = "how the stages are cut when --cut does not say",
           .choices = Choices::listed,
           .listed = {"auto", "tutorial", "flops", "balanced"}}};
}

std::vector<Option> numerics_options() {
  constexpr OptionGroup group = OptionGroup::numerics;
  return {{.name = "dtype",
           .flag = "--dtype",
           .member = &Config::dtype,
           .group = group,
           .meaning = "number format of parameters and activations",
           .choices = Choices::listed,
           .listed = {"float32", "bfloat16", "float16", "float64"}},
          {.name = "tf32",
           .flag = "--tf32",
           .member = &Config::tf32,
           .group = group,
           .used_when = UsedWhen::on_cuda,
           .meaning = "matrix products and convolutions of float32 in TF32"},
          {.name = "cudnn_benchmark",
           .flag = "--cudnn-benchmark",
           .member = &Config::cudnn_benchmark,
           .group = group,
           .used_when = UsedWhen::on_cuda,
           .meaning = "let cuDNN try its algorithms in the warm-up"},
          {.name = "memory_format",
           .flag = "--memory-format",
           .member = &Config::memory_format,
           .group = group,
           .used_when = UsedWhen::model_has_images,
           .meaning = "layout of images and convolution weights",
           .choices = Choices::listed,
           .listed = {"channels_last", "contiguous"}}};
}

std::vector<Option> training_options() {
  constexpr OptionGroup group = OptionGroup::training;
  return {{.name = "loss",
           .flag = "--loss",
           .member = &Config::loss,
           .group = group,
           .meaning = "loss; mse is against one-hot labels",
           .choices = Choices::listed,
           .listed = {"mse", "cross_entropy"}},
          {.name = "optimizer",
           .flag = "--optimizer",
           .member = &Config::optimizer,
           .group = group,
           .meaning = "optimizer",
           .choices = Choices::listed,
           .listed = {"sgd", "adam", "adamw"}},
          {.name = "learning_rate",
           .flag = "--learning-rate",
           .member = &Config::learning_rate,
           .group = group,
           .meaning = "learning rate",
           .bounds = zero_or_more},
          {.name = "momentum",
           .flag = "--momentum",
           .member = &Config::momentum,
           .group = group,
           .used_when = UsedWhen::optimizer_is_sgd,
           .meaning = "momentum of SGD",
           .bounds = {.low = 0, .high = 1, .high_excluded = true}},
          {.name = "weight_decay",
           .flag = "--weight-decay",
           .member = &Config::weight_decay,
           .group = group,
           .meaning = "weight decay",
           .bounds = zero_or_more},
          {.name = "seed",
           .flag = "--seed",
           .member = &Config::seed,
           .group = group,
           .meaning = "seed of parameters, data and the order of rows",
           .bounds = zero_or_more}};
}

std::vector<Option> measurement_options() {
  constexpr OptionGroup group = OptionGroup::measurement;
  return {
      {.name = "steps",
       .flag = "--steps",
       .member = &Config::steps,
       .group = group,
       .meaning = "timed steps of one launch",
       .bounds = positive_count,
       .in_row_name = false},
      {.name = "repetitions",
       .flag = "--repetitions",
       .member = &Config::repetitions,
       .group = group,
       .meaning = "rounds: launches of every row",
       .bounds = positive_count,
       .in_row_name = false},
      {.name = "order",
       .flag = "--order",
       .member = &Config::order,
       .group = group,
       .meaning = "order of rows in a round: random, or block for all rounds of a row together",
       .choices = Choices::listed,
       .listed = {"random", "block"},
       .in_row_name = false},
      {.name = "protocol",
       .flag = "--protocol",
       .member = &Config::protocol,
       .group = group,
       .meaning = "what is timed: steady steps, steps synchronised one by one, or the tutorial's "
                  "whole training calls",
       .choices = Choices::listed,
       .listed = {"steady", "isolated", "tutorial"}},
      {.name = "inputs",
       .flag = "--inputs",
       .member = &Config::inputs,
       .group = group,
       .meaning = "where a step finds its batch; from the host its copy is timed",
       .choices = Choices::listed,
       .listed = {"host", "device"}},
      {.name = "verify",
       .flag = "--no-verify",
       .member = &Config::verify,
       .group = group,
       .meaning = "skip the proof that a row computes the update of one device",
       .is_switch = true,
       .in_row_name = false}};
}

std::vector<Option> make_table() {
  std::vector<Option> table;
  for (const auto& part : {work_options(), device_options(), numerics_options(), training_options(),
                           measurement_options()}) {
    table.insert(table.end(), part.begin(), part.end());
  }
  return table;
}

}  // namespace

std::span<const Option> option_table() {
  static const std::vector<Option> table = make_table();
  return table;
}

}  // namespace stratagem::bench
