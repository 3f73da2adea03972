#include "strategies/options.h"

#include "strategies/runtime/device.h"

namespace stratagem::strategies {
namespace {

using Table = std::vector<OptionOf<StrategyOptions>>;

/// How the work is cut.
Table of_cuts() {
  return {{{.name = "split_size",
            .used_when = When::cut_by_size,
            .meaning = "size of a micro-batch of stages",
            .unit = "samples",
            .bounds = positive_count,
            .row_name_key = "split"},
           &StrategyOptions::split_size},
          {{.name = "schedule",
            .used_when = When::several_stages,
            .meaning = "order of forwards and backwards on the stages",
            .choices = Choices::schedules},
           &StrategyOptions::schedule},
          {{.name = "virtual_stages",
            .used_when = When::schedule_asks,
            .meaning = "stages of each device",
            .bounds = {2, runtime::most_devices}},
           &StrategyOptions::virtual_stages},
          {{.name = "cut",
            .used_when = When::several_stages,
            .meaning = "layers that begin the stages after the first, joined by +"},
           &StrategyOptions::cut},
          {{.name = "partition",
            .used_when = When::several_stages,
            .meaning = "how the stages are cut when --cut does not say"},
           &StrategyOptions::partition},
          {{.name = "accumulation_steps",
            .used_when = When::cut_by_count,
            .meaning = "micro-batches of a replica, whose gradients are added up before they are "
                       "exchanged and applied; of stages instead of --split-size",
            .bounds = positive_count,
            .row_name_key = "accumulation"},
           &StrategyOptions::accumulation_steps}};
}

Table of_replicas() {
  return {{{.name = "bucket_mb",
            .used_when = When::several_replicas,
            .meaning =
                "gradients in one all-reduce, or in a bucket of one process's replicas; the first "
                "takes at most 1",
            .unit = "MiB",
            .bounds = more_than_zero,
            .row_name_key = "bucket"},
           &StrategyOptions::bucket_mb},
          {{.name = "overlap",
            .flag = "--no-overlap",
            .used_when = When::several_replicas,
            .meaning = "one all-reduce after the backward pass, to show what overlap is worth",
            .is_switch = true},
           &StrategyOptions::overlap},
          {{.name = "compression",
            .used_when = When::several_replicas,
            .meaning = "format in which gradients are sent between replicas: their own, or fp16",
            .of_work = true},
           &StrategyOptions::compression}};
}

/// Of what is sharded over replicas.
Table of_shards() {
  return {
      {{.name = "shard",
        .used_when = When::replicas,
        .meaning =
            "what is sharded over replicas: optimizer state, gradients too, or parameters too"},
       &StrategyOptions::shard},
      {{.name = "shard_group_mb",
        .used_when = When::state_sharded,
        .meaning = "parameters that are gathered, and whose gradients are scattered, together; 0: "
                   "those of each block",
        .unit = "MiB",
        .bounds = zero_or_more,
        .row_name_key = "group"},
       &StrategyOptions::shard_group_mb},
      {{.name = "reshard_after_forward",
        .flag = "--no-reshard-after-forward",
        .used_when = When::parameters_sharded,
        .meaning = "sharded parameters stay whole from a step's first use to its last: less "
                   "communication, more memory",
        .is_switch = true,
        .row_name_key = "reshard"},
       &StrategyOptions::reshard_after_forward},
      {{.name = "prefetch_groups",
        .used_when = When::state_sharded,
        .meaning =
            "uses of parameters ahead of which the next are gathered; 0: when they are needed",
        .bounds = {0, 1000}},
       &StrategyOptions::prefetch},
      {{.name = "reduce_dtype",
        .used_when = When::halves_are_summed,
        .meaning = "format in which ranks sum gradients of fewer bits: float32, or the same as the "
                   "gradients'",
        .of_work = true},
       &StrategyOptions::reduce_dtype},
      {{.name = "replicas_of_shards",
        .used_when = When::state_sharded,
        .meaning = "groups of neighbouring replicas, over each of which state is sharded",
        .bounds = {1, runtime::most_devices}},
       &StrategyOptions::replicas_of_shards}};
}

/// Of replicas in one process.
Table of_replicas_in_one_process() {
  return {
      {{.name = "output_device",
        .used_when = When::strategy_says,
        .meaning = "which of the devices gathers the outputs and computes the loss; counted from 0",
        .bounds = zero_or_more,
        .row_name_key = "output"},
       &StrategyOptions::output_device},
      {{.name = "scatter",
        .used_when = When::strategy_says,
        .meaning = "where a replica's samples come from: the first device, which gets the whole "
                   "batch, or the host"},
       &StrategyOptions::scatter},
      {{.name = "loss_on",
        .used_when = When::strategy_says,
        .meaning =
            "where the loss is computed: of the outputs gathered on the output device, or of "
            "its own samples on each of the replicas"},
       &StrategyOptions::loss_on},
      {{.name = "replicate",
        .used_when = When::strategy_says,
        .meaning = "when the model is copied to the other devices: in each step before the forward "
                   "pass, or, where copies are kept, behind the update, in buckets"},
       &StrategyOptions::replicate},
      {{.name = "reduce",
        .used_when = When::strategy_says,
        .meaning = "when gradients are summed: after the backward pass, or overlapped with it, in "
                   "buckets"},
       &StrategyOptions::reduce},
      {{.name = "update",
        .used_when = When::copies_kept,
        .meaning =
            "who sums gradients and updates parameters: the first device, or everywhere each "
            "device its buckets; of copies that are kept"},
       &StrategyOptions::update}};
}

Table of_sharded_layers() {
  return {
      {{.name = "async",
        .flag = "--no-async",
        .used_when = When::sharded_layers,
        .meaning = "wait for each layer's input gradient before the weights' gradients are begun, "
                   "to show what overlap is worth",
        .is_switch = true},
       &StrategyOptions::async_reduce},
      {{.name = "keep_gathered",
        .used_when = When::sharded_layers,
        .meaning = "keep each layer's gathered input for the backward pass, which else gathers it "
                   "again: less communication, more memory",
        .is_switch = true},
       &StrategyOptions::keep_gathered},
      {{.name = "reduce_scatter",
        .used_when = When::sums_are_shared,
        .meaning = "who sums what each rank on CPUs keeps a part of: an exchange of the parts, or "
                   "Gloo itself, which sums the whole everywhere"},
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
