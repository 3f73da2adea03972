#include "bench/config/config.h"

#include <utility>
#include <variant>

#include "bench/config/options.h"
#include "strategies/runtime/device.h"

namespace stratagem::bench {
namespace {

using runtime::most_devices;
using strategies::AtResume;
using strategies::Choices;
using strategies::most_numbers;
using strategies::positive_count;
using strategies::When;
using strategies::zero_or_more;

std::vector<Option> device_options() {
  return {{{.name = "device", .meaning = "kind of device", .of_work = true}, &Config::device},
          {{.name = "devices",
            .meaning = "the job's devices in all; a strategy for one device uses the first",
            .bounds = {1, most_devices}},
           &Config::devices},
          {{.name = "device_ids",
            .meaning = "which devices, joined by +; one named twice is shared",
            .bounds = zero_or_more},
           &Config::device_ids},
          {{.name = "cores_per_device",
            .used_when = When::on_cpu,
            .meaning = "cores of each CPU device",
            .bounds = {1, most_devices},
            .row_name_key = "cores"},
           &Config::cores_per_device},
          {{.name = "oversubscribe",
            .used_when = When::on_cpu,
            .meaning = "allow more CPU devices than cores; such rows are marked",
            .is_switch = true},
           &Config::oversubscribe},
          {{.name = "ranks",
            .used_when = When::strategy_says,
            .meaning = "processes that share the devices; 0: one for each replica of the model",
            .bounds = {0, most_devices}},
           &Config::ranks},
          {{.name = "mesh",
            .used_when = When::strategy_says,
            .meaning = "arrangement of the devices, as data=2/pipeline=2; auto: the strategy's"},
           &Config::mesh},
          {{.name = "backend",
            .used_when = When::between_ranks,
            .meaning = "what carries the collectives; auto: gloo on CPU, nccl on CUDA"},
           &Config::backend},
          {{.name = "interface",
            .used_when = When::between_ranks,
            .meaning = "network interface between ranks; auto: GLOO_SOCKET_IFNAME, else loopback"},
           &Config::interface},
          {{.name = "timeout",
            .meaning = "limit of each action, of each wait for another rank, and for cores in use",
            .unit = "seconds",
            .bounds = {.low = 0, .high = 1e9, .low_excluded = true},
            .in_row_name = false,
            .of_run = true},
           &Config::timeout}};
}

std::vector<Option> work_options() {
  return {{{.name = "strategy",
            .meaning = "how the model is trained",
            .choices = Choices::strategies,
            .at_resume = AtResume::may_change},
           &Config::strategy},
          {{.name = "model",
            .meaning = "what is trained",
            .choices = Choices::models,
            .at_resume = AtResume::must_match},
           &Config::model},
          {{.name = "global_batch_size",
            .meaning = "batch of one step, over all devices",
            .unit = "samples",
            .bounds = {1, most_numbers},
            .row_name_key = "batch",
            .at_resume = AtResume::must_match},
           &Config::global_batch_size},
          {{.name = "image_size",
            .used_when = When::model_has_images,
            .meaning = "side of the square images",
            .unit = "pixels",
            .bounds = {1, 65'536},
            .row_name_key = "image",
            .at_resume = AtResume::must_match},
           &Config::image_size},
          {{.name = "sequence_length",
            .used_when = When::model_has_tokens,
            .meaning = "length of a sample; 0: the model's longest",
            .unit = "tokens",
            .bounds = zero_or_more,
            .row_name_key = "sequence",
            .at_resume = AtResume::must_match},
           &Config::sequence_length},
          {{.name = "features",
            .used_when = When::model_takes_sizes,
            .meaning = "length of a sample; 0: the model's own",
            .bounds = {0, most_numbers},
            .at_resume = AtResume::must_match},
           &Config::features},
          {{.name = "outputs",
            .used_when = When::model_takes_sizes,
            .meaning = "numbers that the model gives of a sample; 0: the model's own",
            .bounds = {0, most_numbers},
            .at_resume = AtResume::must_match},
           &Config::outputs},
          {{.name = "bias",
            .flag = "--no-bias",
            .used_when = When::model_takes_sizes,
            .meaning = "a layer without bias",
            .is_switch = true,
            .at_resume = AtResume::must_match},
           &Config::bias},
          {{.name = "targets",
            .used_when = When::model_has_labels,
            .meaning = "what the loss compares with: classes, or real numbers for mse",
            .at_resume = AtResume::must_match},
           &Config::targets},
          {{.name = "data",
            .used_when = When::model_has_tokens,
            .meaning = "tokens: random ones, or the bytes of a text by Shakespeare",
            .at_resume = AtResume::may_change,
            .of_work = true},
           &Config::data}};
}

std::vector<Option> numerics_options() {
  return {
      {{.name = "dtype",
        .meaning = "number format of everything, also of what the optimizer keeps: half ones "
                   "measure kernels, and train with --mixed-precision",
        .at_resume = AtResume::must_match},
       &Config::dtype},
      {{.name = "mixed_precision",
        .used_when = When::strategy_says,
        .meaning = "format that layers compute in and gradients travel in, beside parameters, "
                   "statistics, sums and optimizer state of float32",
        .row_name_key = "mixed",
        .at_resume = AtResume::must_match},
       &Config::mixed_precision},
      {{.name = "loss_scale",
        .used_when = When::scaled,
        .meaning = "what the loss is multiplied by before the backward pass: dynamic, a number, "
                   "or none",
        .row_name_key = "scale",
        .at_resume = AtResume::must_match},
       &Config::loss_scale},
      {{.name = "loss_scale_hysteresis",
        .used_when = When::scaled_dynamically,
        .meaning = "so many overflows halve a dynamic loss scale, and so does each later one "
                   "until it grows",
        .bounds = positive_count,
        .at_resume = AtResume::must_match},
       &Config::loss_scale_hysteresis},
      {{.name = "tf32",
        .used_when = When::on_cuda,
        .meaning = "matrix products and convolutions of float32 in TF32",
        .at_resume = AtResume::may_change,
        .of_work = true},
       &Config::tf32},
      {{.name = "cudnn_benchmark",
        .used_when = When::on_cuda,
        .meaning = "let cuDNN try its algorithms in the warm-up",
        .at_resume = AtResume::may_change},
       &Config::cudnn_benchmark},
      {{.name = "memory_format",
        .used_when = When::model_has_images,
        .meaning = "layout of images and convolution weights",
        .at_resume = AtResume::may_change,
        .of_work = true},
       &Config::memory_format},
      {{.name = "kernels",
        .used_when = When::on_cpu,
        .meaning = "what computes: our own where they are faster, or ATen's functions alone",
        .at_resume = AtResume::may_change},
       &Config::kernels}};
}

std::vector<Option> training_options() {
  return {{{.name = "loss",
            .used_when = When::model_has_labels,
            .meaning = "loss; mse is against one-hot labels"},
           &Config::loss},
          {{.name = "optimizer", .meaning = "optimizer"}, &Config::optimizer},
          {{.name = "learning_rate", .meaning = "learning rate", .bounds = zero_or_more},
           &Config::learning_rate},
          {{.name = "momentum",
            .used_when = When::optimizer_is_sgd,
            .meaning = "momentum of SGD",
            .bounds = {.low = 0, .high = 1, .high_excluded = true}},
           &Config::momentum},
          {{.name = "weight_decay", .meaning = "weight decay", .bounds = zero_or_more},
           &Config::weight_decay},
          {{.name = "clip_gradients",
            .meaning = "clip gradients to this global 2-norm; 0: do not",
            .bounds = zero_or_more},
           &Config::clip_gradients},
          {{.name = "seed", .meaning = "seed of parameters and data", .bounds = zero_or_more},
           &Config::seed}};
}

std::vector<Option> measurement_options() {
  return {
      {{.name = "steps",
        .meaning = "timed steps of one launch",
        .bounds = {1, 10'000'000},
        .in_row_name = false},
       &Config::steps},
      {{.name = "repetitions",
        .meaning = "rounds: launches of every row; 0: as many as it takes to tell all rows of the "
                   "table apart, 4 for two of them, 6 for seven, 7 for thirteen",
        .bounds = {0, 100'000},
        .in_row_name = false,
        .of_run = true},
       &Config::repetitions},
      {{.name = "order",
        .meaning = "order of rows in a round: random, or block for all rounds of a row together",
        .in_row_name = false,
        .of_run = true},
       &Config::order},
      {{.name = "order_seed",
        .used_when = When::order_is_random,
        .meaning = "seed of the random order; 0: drawn when the run starts",
        .bounds = zero_or_more,
        .in_row_name = false,
        .of_run = true},
       &Config::order_seed},
      {{.name = "protocol",
        .meaning = "what is timed: steady steps, steps with a wait after each, or the tutorial's "
                   "whole training calls",
        .of_work = true},
       &Config::protocol},
      {{.name = "inputs",
        .meaning = "where a step finds its batch; from the host its copy is timed",
        .of_work = true},
       &Config::inputs},
      {{.name = "straggler",
        .used_when = When::between_ranks,
        .meaning = "RANK:MS makes a rank late by so many milliseconds in each step, to see who "
                   "waits for whom; such rows are marked"},
       &Config::straggler},
      {{.name = "plugin",
        .meaning = "plug-ins of the processes that run the row",
        .in_row_name = false,
        .of_process = true},
       &Config::plugin},
      {{.name = "verify",
        .flag = "--no-verify",
        .meaning = "skip the proof that a row computes the update of one device",
        .is_switch = true,
        .in_row_name = false},
       &Config::verify},
      {{.name = "predict",
        .flag = "--no-predict",
        .meaning = "skip what the stages cost and the step that follows from it",
        .is_switch = true,
        .in_row_name = false},
       &Config::predict},
      {{.name = "recalibrate",
        .flag = "--recalibrate",
        .meaning = "measure devices, stages and links anew, whatever an earlier run has kept",
        .is_switch = true,
        .in_row_name = false,
        .of_run = true},
       &Config::recalibrate},
      {{.name = "repeat_disturbed",
        .flag = "--no-repeat-disturbed",
        .meaning = "make no further rounds after launches that something disturbed",
        .is_switch = true,
        .in_row_name = false,
        .of_run = true},
       &Config::repeat_disturbed}};
}

std::vector<Option> work_options_of_strategies() {
  std::vector<Option> options;
  for (const auto& option : strategies::options_of_strategies()) {
    const strategies::OptionWords& words = option;
    std::visit([&](auto member) { options.push_back({words, member}); }, option.member);
  }
  return options;
}

std::vector<Option> make_table() {
  struct Part {
    const char* group;
    std::vector<Option> options;
    AtResume at_resume = AtResume::undecided;  // of each option that does not decide for itself
  };
  std::vector<Option> table;
  for (const auto& [group, options, at_resume] :
       {Part{"Work", work_options()},
        Part{"Work", work_options_of_strategies(), AtResume::may_change},
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

}  // namespace stratagem::bench
