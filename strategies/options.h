// The options of strategies, and the groups in which strategies list them.
//
// An option of a strategy is a member here with its name in a group, its words in options.cpp, and
// its reader. It needs no torch: a row's configuration (bench/config/config.h) begins with these.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "strategies/option.h"
#include "strategies/schedules/sharding.h"

namespace stratagem::strategies {

using runtime::Choice;

/// The rules that cut a model into stages.
using Partition = Choice<"auto", "tutorial", "flops", "balanced">;

/// The order in which ranks share the positions of a sequence.
using ContextOrder = Choice<"zigzag", "contiguous", "striped">;

struct StrategyOptions {
  std::int64_t split_size = 12;         // the samples of a micro-batch
  std::int64_t accumulation_steps = 1;  // micro-batches of a replica whose gradients are added up
  double bucket_mb = 25;                // MiB of gradients in one all-reduce
  bool overlap = true;                  // overlaps all-reduces with the backward pass
  Choice<"none", "fp16"> compression = "none";  // the format of gradients in flight
  std::string schedule = "1f1b";                // see strategies/schedules/registry.h
  std::int64_t virtual_stages = 2;              // per device, unless the schedule decides
  std::string pass_times = "1+1+1+0";           // for a search: of F, I, W and a transfer
  std::int64_t live_micro_batches = 0;          // the limit of a search; 0: the schedule's
  bool async_reduce = true;                     // overlaps input gradients' all-reduces with W
  bool keep_gathered = false;                   // what layers gather is kept for the backward pass
  Choice<"exchange", "library"> reduce_scatter = "exchange";  // the implementation over Gloo
  std::vector<std::string> cut = {};          // the layer names that begin stages 1, 2, ...
  Partition partition = "auto";               // the rule of the cut if `cut` is empty
  Choice<"host", "device"> inputs = "host";   // the place of a step's batch
  std::int64_t output_device = 0;             // the device of the outputs and the loss
  Choice<"first", "host"> scatter = "first";  // the source of a replica's samples
  Choice<"gathered", "replicas"> loss_on = "gathered";  // the outputs that enter the loss
  Choice<"step", "kept"> replicate = "step";            // makes copies in each step, or keeps them
  Choice<"after", "overlapped"> reduce = "after";  // sums gradients after or during backward passes
  Choice<"first", "everywhere"> update = "first";  // the devices that update parameters
  schedules::Sharded shard = "none";               // the state sharded over replicas
  double shard_group_mb = 0;          // MiB of parameters gathered at once; 0: one block
  bool reshard_after_forward = true;  // frees sharded parameters after each use
  std::int64_t prefetch = 1;          // the number of uses ahead at which a group is gathered
  Choice<"float32", "same"> reduce_dtype = "float32";      // the format of sums of 16-bit gradients
  Choice<"none", "selective", "full"> recompute = "none";  // the activations that are made again
  std::vector<std::string> recompute_layers = {};          // of full recomputation; empty: all
  std::int64_t replicas_of_shards = 1;  // groups of replicas that each shard the state
  Choice<"heads", "ring", "gather"> context_exchange = "heads";  // for attention over all positions
  ContextOrder context_order = "zigzag";  // of positions on their ranks, unless heads are exchanged

  bool operator==(const StrategyOptions&) const = default;
};

/// The groups in StrategyEntry::options, in the command line's words.
inline constexpr std::array rank_options = {"ranks", "mesh", "backend", "interface", "straggler"};
inline constexpr std::array schedule_options = {"schedule", "virtual_stages", "pass_times",
                                                "live_micro_batches"};
inline constexpr std::array stage_options = {"cut", "partition"};
inline constexpr std::array replica_options = {"bucket_mb", "overlap", "compression"};
inline constexpr std::array accumulation_options = {"accumulation_steps"};
inline constexpr std::array tensor_options = {"async"};
inline constexpr std::array context_options = {"keep_gathered", "context_exchange",
                                               "context_order"};
inline constexpr std::array shard_options = {"shard_group_mb", "prefetch_groups",
                                             "replicas_of_shards"};
inline constexpr std::array reshard_options = {"reshard_after_forward"};
inline constexpr std::array shard_choice = {"shard"};
inline constexpr std::array recompute_options = {"recompute", "recompute_layers"};
inline constexpr std::array precision_options = {"mixed_precision", "loss_scale",
                                                 "loss_scale_hysteresis"};
inline constexpr std::array reduction_options = {"reduce_dtype"};
inline constexpr std::array reduce_scatter_options = {"reduce_scatter"};
inline constexpr std::array data_parallel_options = {
    "output_device", "scatter", "loss_on", "replicate", "reduce", "update", "bucket_mb"};

/// Returns the most bytes of a bucket of gradients.
inline double bucket_bytes(const StrategyOptions& options) {
  constexpr double bytes_per_mebibyte = 1024.0 * 1024.0;
  return options.bucket_mb * bytes_per_mebibyte;
}

/// Returns whether ranks sum gradients in float32 in mixed precision.
inline bool reduces_in_float32(const StrategyOptions& options) {
  return options.reduce_dtype == "float32";
}

/// Returns whether one process's replicas exchange gradients, or parameters, in buckets.
inline bool exchanges_buckets(const StrategyOptions& options) {
  return options.reduce == "overlapped" || options.replicate == "kept";
}

/// Returns the words of every option above but `inputs`, in the order of the help, the results and
/// the row names. bench/config/config.cpp has `inputs` among the options of measurement.
std::vector<OptionOf<StrategyOptions>> options_of_strategies();

/// Returns the names of several groups in order.
std::vector<std::string> option_names(std::initializer_list<std::span<const char* const>> groups);

}  // namespace stratagem::strategies
