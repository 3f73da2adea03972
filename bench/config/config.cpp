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
  return {
      {{.name = "device", .meaning = "kind of device", .of_work = true}, &Config::device},
      {{.name = "devices",
        .meaning = "number of devices; single uses the first",
        .bounds = {1, most_devices}},
       &Config::devices},
      {{.name = "device_ids",
        .meaning = "indices of the devices, joined by +; a repeated index, as in 0+0, shares the "
                   "device",
        .bounds = zero_or_more},
       &Config::device_ids},
      {{.name = "cores_per_device",
        .used_when = When::on_cpu,
        .meaning = "number of cores of each CPU device",
        .bounds = {1, most_devices},
        .row_name_key = "cores"},
       &Config::cores_per_device},
      {{.name = "oversubscribe",
        .used_when = When::on_cpu,
        .meaning = "allow more CPU devices than cores; these rows are marked",
        .is_switch = true},
       &Config::oversubscribe},
      {{.name = "ranks",
        .used_when = When::strategy_says,
        .meaning =
            "number of processes, each with an equal part of the devices; 0: one for each replica "
            "(one for each device with tensor parallelism)",
        .bounds = {0, most_devices}},
       &Config::ranks},
      {{.name = "mesh",
        .used_when = When::strategy_says,
        .meaning = "sizes of the mesh's dimensions data, pipeline and tensor, such as "
                   "data=2/pipeline=2; auto: the strategy's default"},
       &Config::mesh},
      {{.name = "backend",
        .used_when = When::between_ranks,
        .meaning = "library of the collectives: gloo, nccl, auto (gloo on CPUs, nccl on CUDA)"},
       &Config::backend},
      {{.name = "interface",
        .used_when = When::between_ranks,
        .meaning = "network interface between ranks; auto: GLOO_SOCKET_IFNAME, else loopback"},
       &Config::interface},
      {{.name = "timeout",
        .meaning = "time limit of an action, of a wait for another rank, and of the wait for cores "
                   "that another run uses",
        .unit = "seconds",
        .bounds = {.low = 0, .high = 1e9, .low_excluded = true},
        .in_row_name = false,
        .of_run = true},
       &Config::timeout}};
}

std::vector<Option> work_options() {
  return {{{.name = "strategy",
            .meaning = "parallelism strategy",
            .choices = Choices::strategies,
            .at_resume = AtResume::may_change},
           &Config::strategy},
          {{.name = "model",
            .meaning = "model; script:FILE is a TorchScript file",
            .choices = Choices::models,
            .at_resume = AtResume::must_match},
           &Config::model},
          {{.name = "global_batch_size",
            .meaning = "batch size of one step, over all devices",
            .unit = "samples",
            .bounds = {1, most_numbers},
            .row_name_key = "batch",
            .at_resume = AtResume::must_match},
           &Config::global_batch_size},
          {{.name = "image_size",
            .used_when = When::model_has_images,
            .meaning = "height and width of the images",
            .unit = "pixels",
            .bounds = {1, 65'536},
            .row_name_key = "image",
            .at_resume = AtResume::must_match},
           &Config::image_size},
          {{.name = "sequence_length",
            .used_when = When::model_has_tokens,
            .meaning = "sequence length; 0: the longest of the model",
            .unit = "tokens",
            .bounds = zero_or_more,
            .row_name_key = "sequence",
            .at_resume = AtResume::must_match},
           &Config::sequence_length},
          {{.name = "features",
            .used_when = When::model_takes_sizes,
            .meaning = "number of input features; 0: the model's default",
            .bounds = {0, most_numbers},
            .at_resume = AtResume::must_match},
           &Config::features},
          {{.name = "outputs",
            .used_when = When::model_takes_sizes,
            .meaning = "number of outputs; 0: the model's default",
            .bounds = {0, most_numbers},
            .at_resume = AtResume::must_match},
           &Config::outputs},
          {{.name = "bias",
            .flag = "--no-bias",
            .used_when = When::model_takes_sizes,
            .meaning = "use a layer without bias",
            .is_switch = true,
            .at_resume = AtResume::must_match},
           &Config::bias},
          {{.name = "dropout",
            .used_when = When::model_has_dropout,
            .meaning = "dropout rate after the embedding and before each residual sum; every "
                       "strategy has the same masks",
            .bounds = {.low = 0, .high = 0.99},
            .at_resume = AtResume::must_match},
           &Config::dropout},
          {{.name = "targets",
            .used_when = When::model_has_labels,
            .meaning = "target type: class (indices), real (numbers, for --loss mse)",
            .at_resume = AtResume::must_match},
           &Config::targets},
          {{.name = "data",
            .used_when = When::model_has_tokens,
            .meaning = "training data: random (tokens), text (the bytes of a text by Shakespeare)",
            .at_resume = AtResume::may_change,
            .of_work = true},
           &Config::data}};
}

std::vector<Option> numerics_options() {
  return {
      {{.name = "dtype",
        .meaning =
            "number format of parameters, activations and optimizer state; use --mixed-precision "
            "to train in half precision",
        .at_resume = AtResume::must_match},
       &Config::dtype},
      {{.name = "mixed_precision",
        .used_when = When::strategy_says,
        .meaning = "half-precision format in which layers compute; master parameters, running "
                   "statistics and optimizer state stay in float32",
        .row_name_key = "mixed",
        .at_resume = AtResume::must_match},
       &Config::mixed_precision},
      {{.name = "loss_scale",
        .used_when = When::scaled,
        .meaning = "loss scale: dynamic, a number, or none",
        .row_name_key = "scale",
        .at_resume = AtResume::must_match},
       &Config::loss_scale},
      {{.name = "loss_scale_hysteresis",
        .used_when = When::scaled_dynamically,
        .meaning = "number of overflows after which the dynamic loss scale is halved; each further "
                   "overflow halves it again, and a doubling restarts the count",
        .bounds = positive_count,
        .at_resume = AtResume::must_match},
       &Config::loss_scale_hysteresis},
      {{.name = "tf32",
        .used_when = When::on_cuda,
        .meaning = "compute float32 matrix products and convolutions in TF32",
        .at_resume = AtResume::may_change,
        .of_work = true},
       &Config::tf32},
      {{.name = "cudnn_benchmark",
        .used_when = When::on_cuda,
        .meaning = "let cuDNN benchmark its algorithms in the warm-up",
        .at_resume = AtResume::may_change},
       &Config::cudnn_benchmark},
      {{.name = "memory_format",
        .used_when = When::model_has_images,
        .meaning = "memory format of images and convolution weights",
        .at_resume = AtResume::may_change,
        .of_work = true},
       &Config::memory_format},
      {{.name = "kernels",
        .used_when = When::own_layers_on_cpu,
        .meaning = "kernels: own (Stratagem's, where they are faster), reference (only ATen's)",
        .at_resume = AtResume::may_change},
       &Config::kernels}};
}

std::vector<Option> training_options() {
  return {
      {{.name = "loss",
        .used_when = When::model_has_labels,
        .meaning = "loss function: cross_entropy, mse (class targets become one-hot)"},
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
        .meaning = "maximum global 2-norm of the gradients; 0: no clipping",
        .bounds = zero_or_more},
       &Config::clip_gradients},
      {{.name = "seed", .meaning = "random seed of parameters and data", .bounds = zero_or_more},
       &Config::seed}};
}

std::vector<Option> measurement_options() {
  return {{{.name = "steps",
            .meaning = "number of timed steps of each launch",
            .bounds = {1, 10'000'000},
            .in_row_name = false},
           &Config::steps},
          {{.name = "repetitions",
            .meaning = "number of launches of each row; 0: the fewest that can show a significant "
                       "difference for every pair of rows (4 for two rows, 6 for seven, 7 for "
                       "thirteen)",
            .bounds = {0, 100'000},
            .in_row_name = false,
            .of_run = true},
           &Config::repetitions},
          {{.name = "order",
            .meaning = "order of launches: random (within each round), block (all launches of a "
                       "row in sequence)",
            .in_row_name = false,
            .of_run = true},
           &Config::order},
          {{.name = "order_seed",
            .used_when = When::order_is_random,
            .meaning = "seed of the random order; 0: a new one for each run",
            .bounds = zero_or_more,
            .in_row_name = false,
            .of_run = true},
           &Config::order_seed},
          {{.name = "protocol",
            .meaning = "timed unit: steady (consecutive steps), isolated (a synchronisation after "
                       "each), tutorial (whole training calls, as in PyTorch's tutorial)",
            .of_work = true},
           &Config::protocol},
          {{.name = "inputs",
            .meaning = "location of the batches: host (a step includes the copy to the device), "
                       "device",
            .of_work = true},
           &Config::inputs},
          {{.name = "straggler",
            .used_when = When::between_ranks,
            .meaning = "a rank and its delay in each step, in milliseconds, such as 1:50; these "
                       "rows are marked"},
           &Config::straggler},
          {{.name = "plugin",
            .meaning = "plug-ins of the processes that run the row",
            .in_row_name = false,
            .of_process = true},
           &Config::plugin},
          {{.name = "verify",
            .flag = "--no-verify",
            .meaning = "skip the verification against one device",
            .is_switch = true,
            .in_row_name = false},
           &Config::verify},
          {{.name = "predict",
            .flag = "--no-predict",
            .meaning = "skip the step-time prediction and the calibration of stages and links",
            .is_switch = true,
            .in_row_name = false},
           &Config::predict},
          {{.name = "recalibrate",
            .flag = "--recalibrate",
            .meaning = "measure devices, stages and links again instead of using cached "
                       "calibrations",
            .is_switch = true,
            .in_row_name = false,
            .of_run = true},
           &Config::recalibrate},
          {{.name = "repeat_disturbed",
            .flag = "--no-repeat-disturbed",
            .meaning = "do not repeat launches that other programs disturbed",
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
    AtResume at_resume = AtResume::undecided;  // default of the group's options
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
