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

namespace stratagem::strategies {

struct StrategyOptions {
  std::int64_t split_size = 12;         // samples in a micro-batch
  std::int64_t accumulation_steps = 1;  // micro-batches of a replica, whose gradients are added up
  double bucket_mb = 25;                // MiB of gradients in one all-reduce
  bool overlap = true;                  // all-reduce overlapped with the backward pass
  std::string compression = "none";     // of gradients in flight: none, fp16
  std::string schedule = "1f1b";        // see strategies/schedules/registry.h
  std::int64_t virtual_stages = 2;      // of a device, where the schedule leaves it open
  bool async_reduce = true;             // input gradients' all-reduce overlapped with W
  bool keep_gathered = false;           // by sequence: inputs that were gathered stay for backward
  std::string reduce_scatter = "exchange";  // by whom, over Gloo: exchange, library
  std::vector<std::string> cut = {};        // names of the layers that begin stages 1, 2, ...
  std::string partition = "auto";           // without a cut: auto, tutorial, flops, balanced
  std::string inputs = "host";              // where a step finds its batch: host, device
  std::int64_t output_device = 0;           // which of the devices has the outputs and the loss
  std::string scatter = "first";            // a replica's samples come from: first (device), host
  std::string loss_on = "gathered";   // which outputs: gathered ones, or each of the replicas its
  std::string replicate = "step";     // copies of the model: anew in each step, or kept
  std::string reduce = "after";       // the backward pass, or overlapped with it
  std::string update = "first";       // device has all parameters, or each its share: everywhere
  std::string shard = "none";         // over replicas: optimizer, gradients, parameters, none
  double shard_group_mb = 0;          // MiB of parameters gathered at once; 0: a block's
  bool reshard_after_forward = true;  // sharded parameters are freed after each use
  std::int64_t prefetch = 1;          // uses ahead at which the next group is gathered
  std::string reduce_dtype = "float32";  // of half gradients' sums over ranks: float32, same
  std::int64_t replicas_of_shards = 1;   // groups of replicas, over each of which state is sharded

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
