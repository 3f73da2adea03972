// One row's configuration: what is trained, how, on what, and how it is measured.
//
// A plain struct; it begins with the options that strategies read (strategies/options.h). A table
// in config.cpp has the texts of the others for the command line, config file, results and help. A
// grid is a product of option values (bench/config/grid.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strategies/options.h"

namespace stratagem::bench {

using runtime::Choice;

/// A number format.
using Dtype = Choice<"float32", "bfloat16", "float16", "float64">;

struct Config : strategies::StrategyOptions {
  // what and where
  std::string strategy = "single";
  std::string model = "resnet50";
  Choice<"cpu", "cuda"> device = "cpu";
  std::int64_t devices = 2;              // the job's total
  std::vector<std::int64_t> device_ids;  // empty: 0 .. devices-1; a repeated id is shared
  std::int64_t cores_per_device = 1;     // CPU only
  bool oversubscribe = false;
  std::int64_t ranks = 0;     // processes; 0: the strategy's number
  std::string mesh = "auto";  // data=2/pipeline=2
  Choice<"auto", "gloo", "nccl"> backend = "auto";
  std::string interface = "auto";  // network interface; auto: GLOO_SOCKET_IFNAME, else loopback
  double timeout = 120;            // seconds: each action and collective, and waiting for cores

  // the work and how it is cut
  std::int64_t global_batch_size = 48;
  std::int64_t image_size = 128;             // 0 for models without images
  std::int64_t sequence_length = 0;          // tokens; 0 for models without tokens
  Choice<"random", "text"> data = "random";  // tokens
  std::int64_t features = 0;                 // for models that take sizes; 0: the model's own
  std::int64_t outputs = 0;                  // for models that take sizes; 0: the model's own
  bool bias = true;                          // for models that take sizes
  double dropout = 0;                        // for models with dropout: the rate
  Choice<"class", "real"> targets = "class";

  // numerics
  Dtype dtype = "float32";
  Choice<"none", "bfloat16", "float16"> mixed_precision = "none";
  std::string loss_scale = "dynamic";      // for float16: dynamic, none or a number
  std::int64_t loss_scale_hysteresis = 1;  // overflows until a dynamic scale falls
  bool tf32 = false;                       // CUDA only
  bool cudnn_benchmark = false;            // CUDA only
  Choice<"channels_last", "contiguous"> memory_format = "channels_last";
  Choice<"own", "reference"> kernels = "own";  // CPU only

  // training
  Choice<"mse", "cross_entropy"> loss = "mse";
  Choice<"sgd", "adam", "adamw"> optimizer = "sgd";
  double learning_rate = 0.001;
  double momentum = 0;
  double weight_decay = 0;
  double clip_gradients = 0;  // largest global 2-norm; 0: no clipping
  std::int64_t seed = 1;

  // measurement
  std::int64_t steps = 2;
  std::int64_t repetitions = 0;  // rounds; 0: the number that the verdict of the table needs
  Choice<"random", "block"> order = "random";
  std::int64_t order_seed = 0;
  Choice<"steady", "isolated", "tutorial"> protocol = "steady";
  bool verify = true;
  bool predict = true;
  bool recalibrate = false;
  bool repeat_disturbed = true;
  std::vector<std::string> plugin;  // identities of the loaded plug-ins
  std::string straggler = "none";   // RANK:MS: the rank is delayed in each step

  bool operator==(const Config&) const = default;
};

using Option = strategies::OptionOf<Config>;

/// All options of a row, in the order of the help, the results and the row names.
std::span<const Option> option_table();

/// Converts an option's seconds.
inline std::chrono::milliseconds to_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

/// Returns the format that layers compute in: the row's dtype or, if that is the float32 of mixed
/// precision, the format that is mixed with it.
inline Dtype compute_format(const Config& config) {
  if (config.mixed_precision == "none" || config.dtype != "float32") return config.dtype;
  return config.mixed_precision.pick(config.dtype, Dtype("bfloat16"), Dtype("float16"));
}

}  // namespace stratagem::bench
