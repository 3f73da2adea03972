#include "bench/task_session.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "bench/machine.h"
#include "strategies/pipeline/staged_strategy.h"

namespace stratagem::bench {
namespace {

template <class Value>
Value look_up(const std::map<std::string, Value>& choices, const char* option,
              const std::string& name) {
  const auto found = choices.find(name);
  if (found != choices.end()) return found->second;
  std::string names;
  for (const auto& [choice, value] : choices) names += (names.empty() ? "" : ", ") + choice;
  throw std::invalid_argument(
      fmt::format("--{}: unknown \"{}\"; choices: {}", option, name, names));
}

models::OptimizerOptions optimizer_options(const Config& config) {
  using Kind = models::OptimizerOptions::Kind;
  models::OptimizerOptions options;
  options.kind = look_up<Kind>({{"sgd", Kind::sgd}, {"adam", Kind::adam}, {"adamw", Kind::adamw}},
                               "optimizer", config.optimizer);
  options.learning_rate = config.learning_rate;
  options.momentum = config.momentum;
  options.weight_decay = config.weight_decay;
  return options;
}

void set_numerics(const Config& config) {
  at::globalContext().setBenchmarkCuDNN(config.cudnn_benchmark);
  at::globalContext().setAllowTF32CuBLAS(config.tf32);
  at::globalContext().setAllowTF32CuDNN(config.tf32);
}

std::vector<std::vector<int>> cores_by_device(const Config& config) {
  const std::vector<int> available = available_cores();
  require_cores(config, available.size());
  std::vector<std::vector<int>> cores;
  std::size_t next = 0;
  for (std::int64_t device = 0; device < config.devices; ++device) {
    std::vector<int> own;
    for (std::int64_t core = 0; core < config.cores_per_device; ++core) {
      own.push_back(available[next++ % available.size()]);
    }
    cores.push_back(own);
  }
  return cores;
}

}  // namespace

models::WorkloadOptions workload_options(const Config& config) {
  models::WorkloadOptions options;
  options.model = config.model;
  options.batch = config.global_batch_size;
  options.image_size = config.image_size;
  options.dtype = look_up<at::ScalarType>({{"float32", at::kFloat},
                                           {"float64", at::kDouble},
                                           {"bfloat16", at::kBFloat16},
                                           {"float16", at::kHalf}},
                                          "dtype", config.dtype);
  options.format = look_up<at::MemoryFormat>({{"channels_last", at::MemoryFormat::ChannelsLast},
                                              {"contiguous", at::MemoryFormat::Contiguous}},
                                             "memory-format", config.memory_format);
  options.loss = look_up<models::Loss>(
      {{"mse", models::Loss::mse}, {"cross_entropy", models::Loss::cross_entropy}}, "loss",
      config.loss);
  options.optimizer = optimizer_options(config);
  options.seed = static_cast<std::uint64_t>(config.seed);
  return options;
}

runtime::DeviceGroup open_devices(const Config& config, const TaskContext& context) {
  set_numerics(config);
  runtime::DeviceGroupOptions options;
  options.activity = context.activity;
  if (config.device == "cuda") {
    options.kind = runtime::DeviceKind::cuda;
    for (std::int64_t index = 0; index < config.devices; ++index) {
      const auto position = static_cast<std::size_t>(index);
      options.ordinals.push_back(static_cast<int>(
          position < config.device_ids.size() ? config.device_ids[position] : index));
    }
  } else {
    options.cores = cores_by_device(config);
  }
  return runtime::make_device_group(options);
}

std::chrono::milliseconds timeout_of(const Config& config) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(config.timeout * 1000));
}

Session::Session(const Config& row, const models::WorkloadOptions& options,
                 const TaskContext& context, ActionHook fault)
    : config(row),
      workload(std::make_unique<models::Workload>(options)),
      group(open_devices(row, context)),
      before_action(std::move(fault)),
      strategy(make_strategy()) {}

std::unique_ptr<strategies::Strategy> Session::make_strategy() const {
  strategies::StrategyContext context{*workload, group.devices, {}, timeout_of(config)};
  context.before_action = before_action;
  context.options.split_size = config.split_size;
  context.options.schedule = config.schedule;
  context.options.cut = config.cut;
  context.options.inputs_on_device = config.inputs == "device";
  return strategies::find_strategy(config.strategy).make(context);
}

int stages_of(const Config& config) {
  return strategies::find_strategy(config.strategy).multi_device ? static_cast<int>(config.devices)
                                                                 : 1;
}

std::vector<std::int64_t> micro_batch_sizes(const Config& config) {
  const auto& options = strategies::find_strategy(config.strategy).options;
  const bool splits = std::ranges::find(options, "split_size") != options.end();
  std::vector<std::int64_t> sizes;
  for (const auto& slice : strategies::split_batch(
           config.global_batch_size, splits ? config.split_size : config.global_batch_size)) {
    sizes.push_back(slice.count);
  }
  return sizes;
}

}  // namespace stratagem::bench
