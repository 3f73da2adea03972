// The options that strategies read, and the groups in which strategies list them.
//
// An option of a strategy is a member here with its name in a group, its words in options.cpp, and
// its reader. Torch-free: a row's configuration (bench/config/config.h) begins with these members.
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

/// How a model is cut into stages.
using Partition = Choice<"auto", "tutorial", "flops", "balanced">;

struct StrategyOptions {
  std::int64_t split_size = 12;         // samples in a micro-batch
  std::int64_t accumulation_steps = 1;  // micro-batches of a replica, whose gradients are added up
  double bucket_mb = 25;                // MiB of gradients in one all-reduce
  bool overlap = true;                  // all-reduce overlapped with the backward pass
  Choice<"none", "fp16"> compression = "none";  // of gradients in flight
  std::string schedule = "1f1b";                // see strategies/schedules/registry.h
  std::int64_t virtual_stages = 2;              // of a device, where the schedule leaves it open
  bool async_reduce = true;                     // input gradients' all-reduce overlapped with W
  bool keep_gathered = false;  // by sequence: inputs that were gathered stay for backward
  Choice<"exchange", "library"> reduce_scatter = "exchange";  // who sums, over Gloo
  std::vector<std::string> cut = {};          // names of the layers that begin stages 1, 2, ...
  Partition partition = "auto";               // the rule of a cut that nobody named
  Choice<"host", "device"> inputs = "host";   // where a step finds its batch
  std::int64_t output_device = 0;             // has the outputs and the loss
  Choice<"first", "host"> scatter = "first";  // where a replica's samples come from
  Choice<"gathered", "replicas"> loss_on = "gathered";  // whose outputs the loss is of
  Choice<"step", "kept"> replicate = "step";            // copies are made in each step, or kept
  Choice<"after", "overlapped"> reduce = "after";  // gradients are summed after the backward pass
  Choice<"first", "everywhere"> update = "first";  // devices that update parameters
  schedules::Sharded shard = "none";               // over replicas
  double shard_group_mb = 0;          // MiB of parameters gathered at once; 0: a block's
  bool reshard_after_forward = true;  // sharded parameters are freed after each use
  std::int64_t prefetch = 1;          // uses ahead at which the next group is gathered
  Choice<"float32", "same"> reduce_dtype = "float32";  // in which ranks sum half gradients
  std::int64_t replicas_of_shards = 1;  // groups of replicas, over each of which state is sharded

  bool operator==(const StrategyOptions&) const = default;
};

/// What strategies list in StrategyEntry::options, in the command line's words.
inline constexpr std::array rank_options = {"ranks", "mesh", "backend", "interface", "straggler"};
inline constexpr std::array schedule_options = {"schedule", "virtual_stages"};
inline constexpr std::array stage_options = {"cut", "partition"};
inline constexpr std::array replica_options = {"bucket_mb", "overlap", "compression"};
inline constexpr std::array accumulation_options = {"accumulation_steps"};
inline constexpr std::array tensor_options = {"async"};
inline constexpr std::array sequence_options = {"keep_gathered"};
inline constexpr std::array shard_options = {"shard_group_mb", "prefetch_groups",
                                             "replicas_of_shards"};
inline constexpr std::array reshard_options = {"reshard_after_forward"};
inline constexpr std::array shard_choice = {"shard"};
inline constexpr std::array precision_options = {"mixed_precision", "loss_scale",
                                                 "loss_scale_hysteresis"};
inline constexpr std::array reduction_options = {"reduce_dtype"};
inline constexpr std::array reduce_scatter_options = {"reduce_scatter"};
inline constexpr std::array data_parallel_options = {
    "output_device", "scatter", "loss_on", "replicate", "reduce", "update", "bucket_mb"};

/// What a bucket of gradients may hold.
inline double bucket_bytes(const StrategyOptions& options) {
  constexpr double bytes_per_mebibyte = 1024.0 * 1024.0;
  return options.bucket_mb * bytes_per_mebibyte;
}

/// In mixed precision.
inline bool reduces_in_float32(const StrategyOptions& options) {
  return options.reduce_dtype == "float32";
}

/// Whether one process's replicas exchange gradients, or parameters, in buckets.
inline bool exchanges_buckets(const StrategyOptions& options) {
  return options.reduce == "overlapped" || options.replicate == "kept";
}

/// The words of every option above but `inputs`, in the order of the help, the results and the row
/// names. bench/config/config.cpp has `inputs`, which stands among the options of measurement.
std::vector<OptionOf<StrategyOptions>> options_of_strategies();

/// The names of several groups, one after another.
std::vector<std::string> option_names(std::initializer_list<std::span<const char* const>> groups);

}  // namespace stratagem::strategies
