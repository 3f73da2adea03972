// The table of options. Its order is the order of the help, of the results and of row names.
#include <algorithm>
#include <utility>

#include "bench/config/options.h"
#include "strategies/runtime/device.h"

namespace stratagem::bench {
namespace {

constexpr double most_devices = runtime::most_devices;
constexpr Bounds positive_count = {1};
constexpr Bounds more_than_zero = {.low = 0, .low_excluded = true};
constexpr Bounds zero_or_more = {0};

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
           .used_when = UsedWhen::on_cpu,
           .meaning = "cores of each CPU device",
           .bounds = {1, most_devices},
           .row_name_key = "cores"},
          {.name = "oversubscribe",
           .member = &Config::oversubscribe,
           .used_when = UsedWhen::on_cpu,
           .meaning = "allow more CPU devices than cores; such rows are marked",
           .is_switch = true},
          {.name = "ranks",
           .member = &Config::ranks,
           .used_when = UsedWhen::strategy_says,
           .meaning = "processes that share the devices; 0: one for each replica of the model",
           .bounds = {0, most_devices}},
          {.name = "mesh",
           .member = &Config::mesh,
           .used_when = UsedWhen::strategy_says,
           .meaning = "arrangement of the devices, as data=2/pipeline=2; auto: the strategy's"},
          {.name = "backend",
           .member = &Config::backend,
           .used_when = UsedWhen::between_ranks,
           .meaning = "what carries the collectives; auto: gloo on CPU, nccl on CUDA",
           .listed = {"auto", "gloo", "nccl"}},
          {.name = "interface",
           .member = &Config::interface,
           .used_when = UsedWhen::between_ranks,
           .meaning = "network interface between ranks; auto: GLOO_SOCKET_IFNAME, else loopback"},
          {.name = "timeout",
           .member = &Config::timeout,
           .meaning = "limit of each action, of each wait for another rank, and for cores in use",
           .unit = "seconds",
           .bounds = more_than_zero,
           .in_row_name = false}};
}

std::vector<Option> work_options() {
  return {{.name = "strategy",
           .member = &Config::strategy,
           .meaning = "how the model is trained",
           .choices = Choices::strategies},
          {.name = "model",
           .member = &Config::model,
           .meaning = "what is trained",
           .choices = Choices::models},
          {.name = "global_batch_size",
           .member = &Config::global_batch_size,
           .meaning = "batch of one step, over all devices",
           .unit = "samples",
           .bounds = positive_count,
           .row_name_key = "batch"},
          {.name = "image_size",
           .member = &Config::image_size,
           .used_when = UsedWhen::model_has_images,
           .meaning = "side of the square images",
           .unit = "pixels",
           .bounds = positive_count,
           .row_name_key = "image"},
          {.name = "sequence_length",
           .member = &Config::sequence_length,
           .used_when = UsedWhen::model_has_tokens,
           .meaning = "length of a sample; 0: the model's longest",
           .unit = "tokens",
           .bounds = zero_or_more,
           .row_name_key = "sequence"},
          {.name = "features",
           .member = &Config::features,
           .used_when = UsedWhen::model_takes_sizes,
           .meaning = "length of a sample; 0: the model's own",
           .bounds = zero_or_more},
          {.name = "outputs",
           .member = &Config::outputs,
           .used_when = UsedWhen::model_takes_sizes,
           .meaning = "numbers that the model gives of a sample; 0: the model's own",
           .bounds = zero_or_more},
          {.name = "bias",
           .flag = "--no-bias",
           .member = &Config::bias,
           .used_when = UsedWhen::model_takes_sizes,
           .meaning = "a layer without bias",
           .is_switch = true},
          {.name = "targets",
           .member = &Config::targets,
           .used_when = UsedWhen::model_has_labels,
           .meaning = "what the loss compares with: classes, or real numbers for mse",
           .listed = {"class", "real"}},
          {.name = "data",
           .member = &Config::data,
           .used_when = UsedWhen::model_has_tokens,
           .meaning = "tokens: random ones, or the bytes of a text by Shakespeare",
           .listed = {"random", "text"}}};
}

/// How the work is cut.
std::vector<Option> cut_options() {
  return {{.name = "split_size",
           .member = &Config::split_size,
           .used_when = UsedWhen::several_stages,
           .meaning = "size of a micro-batch",
           .unit = "samples",
           .bounds = positive_count,
           .row_name_key = "split"},
          {.name = "schedule",
           .member = &Config::schedule,
           .used_when = UsedWhen::several_stages,
           .meaning = "order of forwards and backwards on the stages",
           .choices = Choices::schedules},
          {.name = "virtual_stages",
           .member = &Config::virtual_stages,
           .used_when = UsedWhen::interleaved,
           .meaning = "stages of each device",
           .bounds = {2, most_devices}},
          {.name = "cut",
           .member = &Config::cut,
           .used_when = UsedWhen::several_stages,
           .meaning = "layers that begin the stages after the first, joined by +"},
          {.name = "partition",
           .member = &Config::partition,
           .used_when = UsedWhen::several_stages,
           .meaning = "how the stages are cut when --cut does not say",
           .listed = {"auto", "tutorial", "flops", "balanced"}},
          {.name = "accumulation_steps",
           .member = &Config::accumulation_steps,
           .used_when = UsedWhen::one_stage,
           .meaning = "micro-batches of a rank before gradients are exchanged",
           .bounds = positive_count,
           .row_name_key = "accumulation"}};
}

std::vector<Option> replica_options() {
  return {{.name = "bucket_mb",
           .member = &Config::bucket_mb,
           .used_when = UsedWhen::several_replicas,
           .meaning =
               "gradients in one all-reduce, or in a bucket of one process's replicas; the first "
               "takes at most 1",
           .unit = "MiB",
           .bounds = more_than_zero,
           .row_name_key = "bucket"},
          {.name = "overlap",
           .flag = "--no-overlap",
           .member = &Config::overlap,
           .used_when = UsedWhen::several_replicas,
           .meaning = "one all-reduce after the backward pass, to show what overlap is worth",
           .is_switch = true},
          {.name = "compression",
           .member = &Config::compression,
           .used_when = UsedWhen::several_replicas,
           .meaning = "format in which gradients are sent between replicas: their own, or fp16",
           .listed = {"none", "fp16"}}};
}

/// Of what is sharded over replicas.
std::vector<Option> shard_options() {
  return {
      {.name = "shard",
       .member = &Config::shard,
       .used_when = UsedWhen::strategy_says,
       .meaning =
           "what is sharded over replicas: optimizer state, gradients too, or parameters too",
       .listed = {"none", "optimizer", "gradients", "parameters"}},
      {.name = "shard_group_mb",
       .member = &Config::shard_group_mb,
       .used_when = UsedWhen::state_sharded,
       .meaning = "parameters that are gathered, and whose gradients are scattered, together; 0: "
                  "those of each block",
       .unit = "MiB",
       .bounds = zero_or_more,
       .row_name_key = "group"},
      {.name = "reshard_after_forward",
       .flag = "--no-reshard-after-forward",
       .member = &Config::reshard_after_forward,
       .used_when = UsedWhen::parameters_sharded,
       .meaning = "sharded parameters stay whole from a step's first use to its last: less "
                  "communication, more memory",
       .is_switch = true,
       .row_name_key = "reshard"},
      {.name = "prefetch_groups",
       .member = &Config::prefetch,
       .used_when = UsedWhen::state_sharded,
       .meaning =
           "uses of parameters ahead of which the next are gathered; 0: when they are needed",
       .bounds = {0, 1000}}};
}

/// Of replicas in one process.
std::vector<Option> data_parallel_options() {
  return {
      {.name = "output_device",
       .member = &Config::output_device,
       .used_when = UsedWhen::strategy_says,
       .meaning = "which of the devices gathers the outputs and computes the loss; counted from 0",
       .bounds = zero_or_more,
       .row_name_key = "output"},
      {.name = "scatter",
       .member = &Config::scatter,
       .used_when = UsedWhen::strategy_says,
       .meaning = "where a replica's samples come from: the first device, which gets the whole "
                  "batch, or the host",
       .listed = {"first", "host"}},
      {.name = "loss_on",
       .member = &Config::loss_on,
       .used_when = UsedWhen::strategy_says,
       .meaning = "where the loss is computed: of the outputs gathered on the output device, or of "
                  "its own samples on each of the replicas",
       .listed = {"gathered", "replicas"}},
      {.name = "replicate",
       .member = &Config::replicate,
       .used_when = UsedWhen::strategy_says,
       .meaning = "when the model is copied to the other devices: in each step before the forward "
                  "pass, or, where copies are kept, behind the update, in buckets",
       .listed = {"step", "kept"}},
      {.name = "reduce",
       .member = &Config::reduce,
       .used_when = UsedWhen::strategy_says,
       .meaning = "when gradients are summed: after the backward pass, or overlapped with it, in "
                  "buckets",
       .listed = {"after", "overlapped"}},
      {.name = "update",
       .member = &Config::update,
       .used_when = UsedWhen::copies_kept,
       .meaning = "who sums gradients and updates parameters: the first device, or everywhere each "
                  "device its buckets; of copies that are kept",
       .listed = {"first", "everywhere"}}};
}

std::vector<Option> tensor_options() {
  return {
      {.name = "async",
       .flag = "--no-async",
       .member = &Config::async_reduce,
       .used_when = UsedWhen::sharded_layers,
       .meaning = "wait for each layer's input gradient before the weights' gradients are begun, "
                  "to show what overlap is worth",
       .is_switch = true},
      {.name = "keep_gathered",
       .member = &Config::keep_gathered,
       .used_when = UsedWhen::sharded_layers,
       .meaning = "keep each layer's gathered input for the backward pass, which else gathers it "
                  "again: less communication, more memory",
       .is_switch = true},
      {.name = "reduce_scatter",
       .member = &Config::reduce_scatter,
       .used_when = UsedWhen::sums_are_shared,
       .meaning = "who sums what each rank on CPUs keeps a part of: an exchange of the parts, or "
                  "Gloo itself, which sums the whole everywhere",
       .listed = {"exchange", "library"}}};
}

std::vector<Option> numerics_options() {
  return {{.name = "dtype",
           .member = &Config::dtype,
           .meaning = "number format of everything, also of what the optimizer keeps: half ones "
                      "measure kernels, and train with --mixed-precision",
           .listed = {"float32", "bfloat16", "float16", "float64"}},
          {.name = "mixed_precision",
           .member = &Config::mixed_precision,
           .used_when = UsedWhen::strategy_says,
           .meaning = "format that layers compute in and gradients travel in, beside parameters, "
                      "statistics, sums and optimizer state of float32",
           .listed = {"none", "bfloat16", "float16"},
           .row_name_key = "mixed"},
          {.name = "loss_scale",
           .member = &Config::loss_scale,
           .used_when = UsedWhen::scaled,
           .meaning = "what the loss is multiplied by before the backward pass: dynamic, a number, "
                      "or none",
           .row_name_key = "scale"},
          {.name = "loss_scale_hysteresis",
           .member = &Config::loss_scale_hysteresis,
           .used_when = UsedWhen::scaled_dynamically,
           .meaning = "overflow that halves a dynamic loss scale, as all later ones until it grows",
           .bounds = positive_count},
          {.name = "tf32",
           .member = &Config::tf32,
           .used_when = UsedWhen::on_cuda,
           .meaning = "matrix products and convolutions of float32 in TF32"},
          {.name = "cudnn_benchmark",
           .member = &Config::cudnn_benchmark,
           .used_when = UsedWhen::on_cuda,
           .meaning = "let cuDNN try its algorithms in the warm-up"},
          {.name = "memory_format",
           .member = &Config::memory_format,
           .used_when = UsedWhen::model_has_images,
           .meaning = "layout of images and convolution weights",
           .listed = {"channels_last", "contiguous"}},
          {.name = "kernels",
           .member = &Config::kernels,
           .used_when = UsedWhen::on_cpu,
           .meaning = "what computes: our own where they are faster, or ATen's functions alone",
           .listed = {"own", "reference"}}};
}

std::vector<Option> training_options() {
  return {{.name = "loss",
           .member = &Config::loss,
           .used_when = UsedWhen::model_has_labels,
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
           .used_when = UsedWhen::optimizer_is_sgd,
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
       .bounds = positive_count,
       .in_row_name = false},
      {.name = "repetitions",
       .member = &Config::repetitions,
       .meaning = "rounds: launches of every row; 0: as many as it takes to tell all rows of the "
                  "table apart, 4 for two of them, 6 for seven, 7 for thirteen",
       .bounds = zero_or_more,
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
       .used_when = UsedWhen::between_ranks,
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

/// "--split-size" of "split_size".
std::string kebab_flag(std::string name) {
  std::ranges::replace(name, '_', '-');
  return "--" + name;
}

std::vector<Option> make_table() {
  using Part = std::pair<const char*, std::vector<Option>>;
  std::vector<Option> table;
  for (const auto& [group, options] :
       {Part{"Work", work_options()}, Part{"Work", cut_options()}, Part{"Work", replica_options()},
        Part{"Work", shard_options()}, Part{"Work", data_parallel_options()},
        Part{"Work", tensor_options()}, Part{"Devices", device_options()},
        Part{"Numerics", numerics_options()}, Part{"Training", training_options()},
        Part{"Measurement", measurement_options()}}) {
    for (Option option : options) {
      option.group = group;
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
