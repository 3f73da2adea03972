#include "bench/config/options.h"

namespace stratagem::bench {
namespace {

/// How the work is cut.
std::vector<Option> cut_options() {
  return {{.name = "split_size",
           .member = &Config::split_size,
           .used_when = used_when::cut_by_size,
           .meaning = "size of a micro-batch of stages",
           .unit = "samples",
           .bounds = positive_count,
           .row_name_key = "split"},
          {.name = "schedule",
           .member = &Config::schedule,
           .used_when = used_when::several_stages,
           .meaning = "order of forwards and backwards on the stages",
           .choices = Choices::schedules},
          {.name = "virtual_stages",
           .member = &Config::virtual_stages,
           .used_when = used_when::schedule_asks,
           .meaning = "stages of each device",
           .bounds = {2, most_devices}},
          {.name = "cut",
           .member = &Config::cut,
           .used_when = used_when::several_stages,
           .meaning = "layers that begin the stages after the first, joined by +"},
          {.name = "partition",
           .member = &Config::partition,
           .used_when = used_when::several_stages,
           .meaning = "how the stages are cut when --cut does not say",
           .listed = {"auto", "tutorial", "flops", "balanced"}},
          {.name = "accumulation_steps",
           .member = &Config::accumulation_steps,
           .used_when = used_when::cut_by_count,
           .meaning = "micro-batches of a replica, whose gradients are added up before they are "
                      "exchanged and applied; of stages instead of --split-size",
           .bounds = positive_count,
           .row_name_key = "accumulation"}};
}

std::vector<Option> replica_options() {
  return {{.name = "bucket_mb",
           .member = &Config::bucket_mb,
           .used_when = used_when::several_replicas,
           .meaning =
               "gradients in one all-reduce, or in a bucket of one process's replicas; the first "
               "takes at most 1",
           .unit = "MiB",
           .bounds = more_than_zero,
           .row_name_key = "bucket"},
          {.name = "overlap",
           .flag = "--no-overlap",
           .member = &Config::overlap,
           .used_when = used_when::several_replicas,
           .meaning = "one all-reduce after the backward pass, to show what overlap is worth",
           .is_switch = true},
          {.name = "compression",
           .member = &Config::compression,
           .used_when = used_when::several_replicas,
           .meaning = "format in which gradients are sent between replicas: their own, or fp16",
           .listed = {"none", "fp16"}}};
}

/// Of what is sharded over replicas.
std::vector<Option> shard_options() {
  return {
      {.name = "shard",
       .member = &Config::shard,
       .used_when = used_when::replicas,
       .meaning =
           "what is sharded over replicas: optimizer state, gradients too, or parameters too",
       .listed = {"none", "optimizer", "gradients", "parameters"}},
      {.name = "shard_group_mb",
       .member = &Config::shard_group_mb,
       .used_when = used_when::state_sharded,
       .meaning = "parameters that are gathered, and whose gradients are scattered, together; 0: "
                  "those of each block",
       .unit = "MiB",
       .bounds = zero_or_more,
       .row_name_key = "group"},
      {.name = "reshard_after_forward",
       .flag = "--no-reshard-after-forward",
       .member = &Config::reshard_after_forward,
       .used_when = used_when::parameters_sharded,
       .meaning = "sharded parameters stay whole from a step's first use to its last: less "
                  "communication, more memory",
       .is_switch = true,
       .row_name_key = "reshard"},
      {.name = "prefetch_groups",
       .member = &Config::prefetch,
       .used_when = used_when::state_sharded,
       .meaning =
           "uses of parameters ahead of which the next are gathered; 0: when they are needed",
       .bounds = {0, 1000}},
      {.name = "reduce_dtype",
       .member = &Config::reduce_dtype,
       .used_when = used_when::halves_are_summed,
       .meaning = "format in which ranks sum gradients of fewer bits: float32, or the same as the "
                  "gradients'",
       .listed = {"float32", "same"}},
      {.name = "replicas_of_shards",
       .member = &Config::replicas_of_shards,
       .used_when = used_when::state_sharded,
       .meaning = "groups of neighbouring replicas, over each of which state is sharded",
       .bounds = {1, most_devices}}};
}

/// Of replicas in one process.
std::vector<Option> data_parallel_options() {
  return {
      {.name = "output_device",
       .member = &Config::output_device,
       .used_when = used_when::strategy_says,
       .meaning = "which of the devices gathers the outputs and computes the loss; counted from 0",
       .bounds = zero_or_more,
       .row_name_key = "output"},
      {.name = "scatter",
       .member = &Config::scatter,
       .used_when = used_when::strategy_says,
       .meaning = "where a replica's samples come from: the first device, which gets the whole "
                  "batch, or the host",
       .listed = {"first", "host"}},
      {.name = "loss_on",
       .member = &Config::loss_on,
       .used_when = used_when::strategy_says,
       .meaning = "where the loss is computed: of the outputs gathered on the output device, or of "
                  "its own samples on each of the replicas",
       .listed = {"gathered", "replicas"}},
      {.name = "replicate",
       .member = &Config::replicate,
       .used_when = used_when::strategy_says,
       .meaning = "when the model is copied to the other devices: in each step before the forward "
                  "pass, or, where copies are kept, behind the update, in buckets",
       .listed = {"step", "kept"}},
      {.name = "reduce",
       .member = &Config::reduce,
       .used_when = used_when::strategy_says,
       .meaning = "when gradients are summed: after the backward pass, or overlapped with it, in "
                  "buckets",
       .listed = {"after", "overlapped"}},
      {.name = "update",
       .member = &Config::update,
       .used_when = used_when::copies_kept,
       .meaning = "who sums gradients and updates parameters: the first device, or everywhere each "
                  "device its buckets; of copies that are kept",
       .listed = {"first", "everywhere"}}};
}

std::vector<Option> tensor_options() {
  return {
      {.name = "async",
       .flag = "--no-async",
       .member = &Config::async_reduce,
       .used_when = used_when::sharded_layers,
       .meaning = "wait for each layer's input gradient before the weights' gradients are begun, "
                  "to show what overlap is worth",
       .is_switch = true},
      {.name = "keep_gathered",
       .member = &Config::keep_gathered,
       .used_when = used_when::sharded_layers,
       .meaning = "keep each layer's gathered input for the backward pass, which else gathers it "
                  "again: less communication, more memory",
       .is_switch = true},
      {.name = "reduce_scatter",
       .member = &Config::reduce_scatter,
       .used_when = used_when::sums_are_shared,
       .meaning = "who sums what each rank on CPUs keeps a part of: an exchange of the parts, or "
                  "Gloo itself, which sums the whole everywhere",
       .listed = {"exchange", "library"}}};
}

}  // namespace

std::vector<Option> options_of_strategies() {
  std::vector<Option> all;
  for (const auto& part : {cut_options(), replica_options(), shard_options(),
                           data_parallel_options(), tensor_options()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace stratagem::bench
