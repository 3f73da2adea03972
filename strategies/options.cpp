#include "strategies/options.h"

#include "strategies/runtime/device.h"

namespace stratagem::strategies {
namespace {

using Table = std::vector<OptionOf<StrategyOptions>>;

constexpr double most_live_micro_batches = 1'000'000;

/// Returns the options that cut the work.
Table of_cuts() {
  return {
      {{.name = "split_size",
        .used_when = When::cut_by_size,
        .meaning = "micro-batch size of a pipeline",
        .unit = "samples",
        .bounds = positive_count,
        .row_name_key = "split"},
       &StrategyOptions::split_size},
      {{.name = "schedule",
        .used_when = When::several_stages,
        .meaning = "pipeline schedule, or csv:FILE with an order of its passes",
        .choices = Choices::schedules},
       &StrategyOptions::schedule},
      {{.name = "virtual_stages",
        .used_when = When::schedule_asks,
        .meaning = "number of stages of each device",
        .bounds = {2, runtime::most_devices}},
       &StrategyOptions::virtual_stages},
      {{.name = "pass_times",
        .used_when = When::schedule_is_searched,
        .meaning = "times for which the schedule is searched, in any unit: forward + input "
                   "gradient + weight gradient + transfer"},
       &StrategyOptions::pass_times},
      {{.name = "live_micro_batches",
        .used_when = When::schedule_is_searched,
        .meaning = "largest number of micro-batches whose activations a device holds; 0: twice the "
                   "number of devices",
        .bounds = {0, most_live_micro_batches},
        .row_name_key = "live"},
       &StrategyOptions::live_micro_batches},
      {{.name = "cut",
        .used_when = When::several_stages,
        .meaning = "first layer of each stage after the first, joined by +"},
       &StrategyOptions::cut},
      {{.name = "partition",
        .used_when = When::several_stages,
        .meaning = "rule that chooses the stages without --cut"},
       &StrategyOptions::partition},
      {{.name = "accumulation_steps",
        .used_when = When::cut_by_count,
        .meaning = "number of micro-batches whose gradients are summed before the update; for a "
                   "pipeline, give it or --split-size",
        .bounds = positive_count,
        .row_name_key = "accumulation"},
       &StrategyOptions::accumulation_steps},
      {{.name = "recompute",
        .used_when = When::strategy_says,
        .meaning = "activations that the backward pass recomputes: none, selective (outputs of "
                   "norms, attention and activation functions that a block's linear layers take), "
                   "full (all but the input of each group of layers)"},
       &StrategyOptions::recompute},
      {{.name = "recompute_layers",
        .used_when = When::groups_recomputed,
        .meaning = "layers whose groups are recomputed, joined by +; by default all"},
       &StrategyOptions::recompute_layers}};
}

Table of_replicas() {
  return {{{.name = "bucket_mb",
            .used_when = When::several_replicas,
            .meaning = "size of a gradient bucket; the first bucket has at most 1 MiB",
            .unit = "MiB",
            .bounds = more_than_zero,
            .row_name_key = "bucket"},
           &StrategyOptions::bucket_mb},
          {{.name = "overlap",
            .flag = "--no-overlap",
            .used_when = When::several_replicas,
            .meaning = "all-reduce the gradients once after the backward pass; otherwise buckets "
                       "are all-reduced during it",
            .is_switch = true},
           &StrategyOptions::overlap},
          {{.name = "compression",
            .used_when = When::several_replicas,
            .meaning = "format of gradients in the all-reduce: none (unchanged), fp16",
            .of_work = true},
           &StrategyOptions::compression}};
}

/// Returns the options of sharding over replicas.
Table of_shards() {
  return {
      {{.name = "shard",
        .used_when = When::replicas,
        .meaning = "state that is sharded over replicas: none, optimizer, gradients (with the "
                   "optimizer), parameters (with gradients and optimizer)"},
       &StrategyOptions::shard},
      {{.name = "shard_group_mb",
        .used_when = When::state_sharded,
        .meaning =
            "size of a group of parameters that is gathered and reduce-scattered together; 0: each "
            "block is a group",
        .unit = "MiB",
        .bounds = zero_or_more,
        .row_name_key = "group"},
       &StrategyOptions::shard_group_mb},
      {{.name = "reshard_after_forward",
        .flag = "--no-reshard-after-forward",
        .used_when = When::parameters_sharded,
        .meaning = "keep gathered parameters from the forward pass to the backward pass: less "
                   "communication, more memory",
        .is_switch = true,
        .row_name_key = "reshard"},
       &StrategyOptions::reshard_after_forward},
      {{.name = "prefetch_groups",
        .used_when = When::state_sharded,
        .meaning = "number of parameter groups to gather ahead of their use",
        .bounds = {0, 1000}},
       &StrategyOptions::prefetch},
      {{.name = "reduce_dtype",
        .used_when = When::halves_are_summed,
        .meaning = "format in which half-precision gradients are summed over ranks: float32, same "
                   "(the gradients' own)",
        .of_work = true},
       &StrategyOptions::reduce_dtype},
      {{.name = "replicas_of_shards",
        .used_when = When::state_sharded,
        .meaning =
            "number of groups of hybrid sharding (HSDP); a group is neighbouring replicas, which "
            "shard the whole state among themselves",
        .bounds = {1, runtime::most_devices}},
       &StrategyOptions::replicas_of_shards}};
}

/// Returns the options of replicas in one process.
Table of_replicas_in_one_process() {
  return {
      {{.name = "output_device",
        .used_when = When::strategy_says,
        .meaning = "index of the device that gathers the outputs and computes the loss",
        .bounds = zero_or_more,
        .row_name_key = "output"},
       &StrategyOptions::output_device},
      {{.name = "scatter",
        .used_when = When::strategy_says,
        .meaning = "source of each replica's samples: first (the first device), host"},
       &StrategyOptions::scatter},
      {{.name = "loss_on",
        .used_when = When::strategy_says,
        .meaning =
            "device that computes the loss: gathered (the output device), replicas (each device)"},
       &StrategyOptions::loss_on},
      {{.name = "replicate",
        .used_when = When::strategy_says,
        .meaning = "when the model is copied to the other devices: step (before each forward "
                   "pass), kept (in buckets after each update)"},
       &StrategyOptions::replicate},
      {{.name = "reduce",
        .used_when = When::strategy_says,
        .meaning = "when gradients are summed: after (the backward pass), overlapped (with it, in "
                   "buckets)"},
       &StrategyOptions::reduce},
      {{.name = "update",
        .used_when = When::copies_kept,
        .meaning = "devices that sum gradients and update parameters: first, everywhere (each for "
                   "its own buckets)"},
       &StrategyOptions::update}};
}

Table of_sharded_layers() {
  return {
      {{.name = "async",
        .flag = "--no-async",
        .used_when = When::layers_exchange,
        .meaning = "do not overlap exchanges inside layers with computation: the all-reduce of a "
                   "sharded layer's input gradient, keys and values on their way",
        .is_switch = true},
       &StrategyOptions::async_reduce},
      {{.name = "keep_gathered",
        .used_when = When::layers_gather,
        .meaning = "keep what layers gather (inputs, or keys and values) for the backward pass "
                   "instead of gathering it again: less communication, more memory",
        .is_switch = true},
       &StrategyOptions::keep_gathered},
      {{.name = "context_exchange",
        .used_when = When::positions_shared,
        .meaning =
            "what ranks that share samples exchange for attention: heads (all-to-alls), ring "
            "(keys and values go round), gather (all keys and values at once)"},
       &StrategyOptions::context_exchange},
      {{.name = "context_order",
        .used_when = When::keys_exchanged,
        .meaning = "positions of a rank: zigzag (two parts, equal work), contiguous (one part), "
                   "striped (every n-th)"},
       &StrategyOptions::context_order},
      {{.name = "reduce_scatter",
        .used_when = When::sums_are_shared,
        .meaning =
            "implementation of reduce-scatter on CPUs: exchange (Stratagem's), library (Gloo's)"},
       &StrategyOptions::reduce_scatter}};
}

}  // namespace

std::vector<OptionOf<StrategyOptions>> options_of_strategies() {
  std::vector<OptionOf<StrategyOptions>> all;
  for (const auto& part :
       {of_cuts(), of_replicas(), of_shards(), of_replicas_in_one_process(), of_sharded_layers()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<std::string> option_names(std::initializer_list<std::span<const char* const>> groups) {
  std::vector<std::string> names;
  for (const auto group : groups) names.insert(names.end(), group.begin(), group.end());
  return names;
}

}  // namespace stratagem::strategies
