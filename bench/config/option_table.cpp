// The table of options. Its order is the order of the help, of the results and of row names.
#include <algorithm>
#include <utility>

#include "bench/config/options.h"

namespace stratagem::bench {
namespace {

std::vector<Option> device_options() {
  return {{.name = "device",
           .member = &Config::device,
           .meaning = "kind of device",
           .listed = {"cpu", "cuda"}},
          {.name = "devices",
           .member = &Config::devices,
           .meaning = "the job's devices in all; a strategy for one device uses the first",
           .bounds = {1, most_devices}},
          {.name = "device_ids",
           .member = &Config::device_ids,
           .meaning = "which devices, joined by +; one named twice is shared",
           .bounds = zero_or_more},
          {.name = "cores_per_device",
           .member = &Config::cores_per_device,
           .used_when = used_when::on_cpu,
           .meaning = "cores of each CPU device",
           .bounds = {1, most_devices},
           .row_name_key = "cores"},
          {.name = "oversubscribe",
           .member = &Config::oversubscribe,
           .used_when = used_when::on_cpu,
           .meaning = "allow more CPU devices than cores; such rows are marked",
           .is_switch = true},
          {.name = "ranks",
           .member = &Config::ranks,
           .used_when = used_when::strategy_says,
           .meaning = "processes that share the devices; 0: one for each replica of the model",
           .bounds = {0, most_devices}},
          {.name = "mesh",
           .member = &Config::mesh,
           .used_when = used_when::strategy_says,
           .meaning = "arrangement of the devices, as data=2/pipeline=2; auto: the strategy's"},
          {.name = "backend",
           .member = &Config::backend,
           .used_when = used_when::between_ranks,
           .meaning = "what carries the collectives; auto: gloo on CPU, nccl on CUDA",
           .listed = {"auto", "gloo", "nccl"}},
          {.name = "interface",
           .member = &Config::interface,
           .used_when = used_when::between_ranks,
           .meaning = "network interface between ranks; auto: GLOO_SOCKET_IFNAME, else loopback"},
          {.name = "timeout",
           .member = &Config::timeout,
           .meaning = "limit of each action, of each wait for another rank, and for cores in use",
           .unit = "seconds",
           .bounds = {.low = 0, .high = 1e9, .low_excluded = true},
           .in_row_name = false}};
}

std::vector<Option> work_options() {
  return {{.name = "strategy",
           .member = &Config::strategy,
           .meaning = "how the model is trained",
           .choices = Choices::strategies,
           .at_resume = AtResume::may_change},
          {.name = "model",
           .member = &Config::model,
           .meaning = "what is trained",
           .choices = Choices::models,
           .at_resume = AtResume::must_match},
          {.name = "global_batch_size",
           .member = &Config::global_batch_size,
           .meaning = "batch of one step, over all devices",
           .unit = "samples",
           .bounds = {1, most_numbers},
           .row_name_key = "batch",
           .at_resume = AtResume::must_match},
          {.name = "image_size",
           .member = &Config::image_size,
           .used_when = used_when::model_has_images,
           .meaning = "side of the square images",
           .unit = "pixels",
           .bounds = {1, 65'536},
           .row_name_key = "image",
           .at_resume = AtResume::must_match},
          {.name = "sequence_length",
           .member = &Config::sequence_length,
           .used_when = used_when::model_has_tokens,
           .meaning = "length of a sample; 0: the model's longest",
           .unit = "tokens",
           .bounds = zero_or_more,
           .row_name_key = "sequence",
           .at_resume = AtResume::must_match},
          {.name = "features",
           .member = &Config::features,
           .used_when = used_when::model_takes_sizes,
           .meaning = "length of a sample; 0: the model's own",
           .bounds = {0, most_numbers},
           .at_resume = AtResume::must_match},
          {.name = "outputs",
           .member = &Config::outputs,
           .used_when = used_when::model_takes_sizes,
           .meaning = "numbers that the model gives of a sample; 0: the model's own",
           .bounds = {0, most_numbers},
           .at_resume = AtResume::must_match},
          {.name = "bias",
           .flag = "--no-bias",
           .member = &Config::bias,
           .used_when = used_when::model_takes_sizes,
           .meaning = "a layer without bias",
           .is_switch = true,
           .at_resume = AtResume::must_match},
          {.name = "targets",
           .member = &Config::targets,
           .used_when = used_when::model_has_labels,
           .meaning = "what the loss compares with: classes, or real numbers for mse",
           .listed = {"class", "real"},
           .at_resume = AtResume::must_match},
          {.name = "data",
           .member = &Config::data,
           .used_when = used_when::model_has_tokens,
           .meaning = "tokens: random ones, or the bytes of a text by Shakespeare",
           .listed = {"random", "text"},
           .at_resume = AtResume::may_change}};
}

std::vector<Option> numerics_options() {
  return {{.name = "dtype",
           .member = &Config::dtype,
           .meaning = "number format of everything, also of what the optimizer keeps: half ones "
                      "measure kernels, and train with --mixed-precision",
           .listed = {"float32", "bfloat16", "float16", "float64"},
           .at_resume = AtResume::must_match},
          {.name = "mixed_precision",
           .member = &Config::mixed_precision,
           .used_when = used_when::strategy_says,
           .meaning = "format that layers compute in and gradients travel in, beside parameters, "
                      "statistics, sums and optimizer state of float32",
           .listed = {"none", "bfloat16", "float16"},
           .row_name_key = "mixed",
           .at_resume = AtResume::must_match},
          {.name = "loss_scale",
           .member = &Config::loss_scale,
           .used_when = used_when::scaled,
           .meaning = "what the loss is multiplied by before the backward pass: dynamic, a number, "
                      "or none",
           .row_name_key = "scale",
           .at_resume = AtResume::must_match},
          {.name = "loss_scale_hysteresis",
           .member = &Config::loss_scale_hysteresis,
           .used_when = used_when::scaled_dynamically,
           .meaning = "so many overflows halve a dynamic loss scale, and so does each later one "
                      "until it grows",
           .bounds = positive_count,
           .at_resume = AtResume::must_match},
          {.name = "tf32",
           .member = &Config::tf32,
           .used_when = used_when::on_cuda,
           .meaning = "matrix products and convolutions of float32 in TF32",
           .at_resume = AtResume::may_change},
          {.name = "cudnn_benchmark",
           .member = &Config::cudnn_benchmark,
           .used_when = used_when::on_cuda,
           .meaning = "let cuDNN try its algorithms in the warm-up",
           .at_resume = AtResume::may_change},
          {.name = "memory_format",
           .member = &Config::memory_format,
           .used_when = used_when::model_has_images,
           .meaning = "layout of images and convolution weights",
           .listed = {"channels_last", "contiguous"},
           .at_resume = AtResume::may_change},
          {.name = "kernels",
           .member = &Config::kernels,
           .used_when = used_when::on_cpu,
           .meaning = "what computes: our own where they are faster, or ATen's functions alone",
           .listed = {"own", "reference"},
           .at_resume = AtResume::may_change}};
}

std::vector<Option> training_options() {
  return {{.name = "loss",
           .member = &Config::loss,
           .used_when = used_when::model_has_labels,
           .meaning = "loss; mse is against one-hot labels",
           .listed = {"mse", "cross_entropy"}},
          {.name = "optimizer",
           .member = &Config::optimizer,
           .meaning = "optimizer",
           .listed = {"sgd", "adam", "adamw"}},
          {.name = "learning_rate",
           .member = &Config::learning_rate,
           .meaning = "learning rate",
           .bounds = zero_or_more},
          {.name = "momentum",
           .member = &Config::momentum,
           .used_when = used_when::optimizer_is_sgd,
           .meaning = "momentum of SGD",
           .bounds = {.low = 0, .high = 1, .high_excluded = true}},
          {.name = "weight_decay",
           .member = &Config::weight_decay,
           .meaning = "weight decay",
           .bounds = zero_or_more},
          {.name = "clip_gradients",
           .member = &Config::clip_gradients,
           .meaning = "clip gradients to this global 2-norm; 0: do not",
           .bounds = zero_or_more},
          {.name = "seed",
           .member = &Config::seed,
           .meaning = "seed of parameters, data and the order of rows",
           .bounds = zero_or_more}};
}

std::vector<Option> measurement_options() {
  return {
      {.name = "steps",
       .member = &Config::steps,
       .meaning = "timed steps of one launch",
       .bounds = {1, 10'000'000},
       .in_row_name = false},
      {.name = "repetitions",
       .member = &Config::repetitions,
       .meaning = "rounds: launches of every row; 0: as many as it takes to tell all rows of the "
                  "table apart, 4 for two of them, 6 for seven, 7 for thirteen",
       .bounds = {0, 100'000},
       .in_row_name = false},
      {.name = "order",
       .member = &Config::order,
       .meaning = "order of rows in a round: random, or block for all rounds of a row together",
       .listed = {"random", "block"},
       .in_row_name = false},
      {.name = "protocol",
       .member = &Config::protocol,
       .meaning = "what is timed: steady steps, steps synchronised one by one, or the tutorial's "
                  "whole training calls",
       .listed = {"steady", "isolated", "tutorial"}},
      {.name = "inputs",
       .member = &Config::inputs,
       .meaning = "where a step finds its batch; from the host its copy is timed",
       .listed = {"host", "device"}},
      {.name = "straggler",
       .member = &Config::straggler,
       .used_when = used_when::between_ranks,
       .meaning = "RANK:MS makes a rank late by so many milliseconds in each step, to see who "
                  "waits for whom; such rows are marked"},
      {.name = "plugin",
       .member = &Config::plugin,
       .meaning = "plug-ins of the processes that run the row",
       .in_row_name = false,
       .of_process = true},
      {.name = "verify",
       .flag = "--no-verify",
       .member = &Config::verify,
       .meaning = "skip the proof that a row computes the update of one device",
       .is_switch = true,
       .in_row_name = false},
      {.name = "predict",
       .flag = "--no-predict",
       .member = &Config::predict,
       .meaning = "skip what the stages cost and the step that follows from it",
       .is_switch = true,
       .in_row_name = false},
      {.name = "recalibrate",
       .flag = "--recalibrate",
       .member = &Config::recalibrate,
       .meaning = "measure devices, stages and links anew, whatever an earlier run has kept",
       .is_switch = true,
       .in_row_name = false},
      {.name = "repeat_disturbed",
       .flag = "--no-repeat-disturbed",
       .member = &Config::repeat_disturbed,
       .meaning = "do not make launches that something disturbed once more",
       .is_switch = true,
       .in_row_name = false}};
}

std::vector<Option> make_table() {
  struct Part {
    const char* group;
    std::vector<Option> options;
    AtResume at_resume = AtResume::undecided;  // of each option that does not decide for itself
  };
  std::vector<Option> table;
  for (const auto& [group, options, at_resume] :
       {Part{"Work", work_options()}, Part{"Work", options_of_strategies(), AtResume::may_change},
        Part{"Devices", device_options(), AtResume::may_change},
        Part{"Numerics", numerics_options()},
        Part{"Training", training_options(), AtResume::must_match},
        Part{"Measurement", measurement_options(), AtResume::may_change}}) {
    for (Option option : options) {
      option.group = group;
      if (option.at_resume == AtResume::undecided) option.at_resume = at_resume;
      if (option.flag.empty()) option.flag = kebab_flag(option.name);
      table.push_back(std::move(option));
    }
  }
  return table;
}

}  // namespace

std::span<const Option> option_table() {
  static const std::vector<Option> table = make_table();
  return table;
}

std::string kebab_flag(std::string name) {
  std::ranges::replace(name, '_', '-');
  return "--" + name;
}

}  // namespace stratagem::bench
