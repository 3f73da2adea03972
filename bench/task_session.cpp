#include "bench/task_session.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "bench/machine.h"
#include "strategies/pipeline/staged_strategy.h"
#include "strategies/runtime/cpu_device.h"

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

/// Which of the job's devices this process drives.
struct OwnDevices {
  std::int64_t first = 0;          // in the job
  std::int64_t first_on_host = 0;  // among those of this host
  std::int64_t count = 1;
};

OwnDevices own_devices(const Config& config, const TaskContext& context) {
  if (context.ranks == nullptr) return {0, 0, config.devices};
  const std::int64_t each = config.devices / ranks_of(config);
  const runtime::RankPlace& place = context.ranks->place();
  return {place.rank * each, place.local_rank * each, each};
}

void set_numerics(const Config& config) {
  at::globalContext().setBenchmarkCuDNN(config.cudnn_benchmark);
  at::globalContext().setAllowTF32CuBLAS(config.tf32);
  at::globalContext().setAllowTF32CuDNN(config.tf32);
}

/// Ranks of one host share its cores: each takes its own part of the devices' list.
std::vector<std::vector<int>> cores_by_device(const Config& config, const OwnDevices& own) {
  const std::vector<int> available = available_cores();
  require_cores(config, available.size());
  std::vector<std::vector<int>> cores;
  auto next = static_cast<std::size_t>(own.first_on_host * config.cores_per_device);
  for (std::int64_t device = 0; device < own.count; ++device) {
    std::vector<int> of_device;
    for (std::int64_t core = 0; core < config.cores_per_device; ++core) {
      of_device.push_back(available[next++ % available.size()]);
    }
    cores.push_back(of_device);
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
  const OwnDevices own = own_devices(config, context);
  runtime::DeviceGroupOptions options;
  options.activity = context.activity;
  if (config.device == "cuda") {
    options.kind = runtime::DeviceKind::cuda;
    for (std::int64_t index = 0; index < own.count; ++index) {
      const auto position = static_cast<std::size_t>(own.first + index);
      options.ordinals.push_back(static_cast<int>(position < config.device_ids.size()
                                                      ? config.device_ids[position]
                                                      : own.first_on_host + index));
    }
  } else {
    options.cores = cores_by_device(config, own);
  }
  return runtime::make_device_group(options);
}

std::chrono::milliseconds timeout_of(const Config& config) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(config.timeout * 1000));
}

namespace {

/// The ranks that hold replicas. Its threads share the cores of this rank's device.
std::unique_ptr<runtime::ProcessGroup> make_data_group(const Config& config,
                                                       const runtime::DeviceGroup& group,
                                                       const TaskContext& context) {
  if (context.ranks == nullptr) return nullptr;
  runtime::Device& device = *group.devices.front();
  if (!device.description().cores.empty()) runtime::pin_this_thread(device.description().cores);
  std::vector<int> ranks(static_cast<std::size_t>(context.ranks->place().world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::string usual = config.device == "cuda" ? "nccl" : "gloo";
  return context.ranks->make_group(
      "data", std::move(ranks), config.backend == "auto" ? usual : config.backend, device,
      {.interface_name = config.interface == "auto" ? "" : config.interface,
       .timeout = timeout_of(config)});
}

}  // namespace

Session::Session(const Config& row, const models::WorkloadOptions& options,
                 const TaskContext& context, ActionHook fault)
    : config(row),
      workload(std::make_unique<models::Workload>(options)),
      group(open_devices(row, context)),
      data_group(make_data_group(row, group, context)),
      before_action(std::move(fault)),
      strategy(make_strategy()) {}

std::unique_ptr<strategies::Strategy> Session::make_strategy() const {
  strategies::StrategyContext context{.workload = *workload, .devices = group.devices};
  context.timeout = timeout_of(config);
  context.before_action = before_action;
  context.options.split_size = config.split_size;
  context.options.schedule = config.schedule;
  context.options.cut = config.cut;
  context.options.inputs_on_device = config.inputs == "device";
  context.options.accumulation_steps = config.accumulation_steps;
  context.options.bucket_mebibytes = config.bucket_mb;
  context.options.overlap = config.overlap;
  context.data_group = data_group.get();
  return strategies::find_strategy(config.strategy).make(context);
}

std::vector<nlohmann::json> tell_all_ranks(const TaskContext& context, const nlohmann::json& own) {
  if (context.ranks == nullptr) return {own};
  std::vector<nlohmann::json> all;
  for (const std::string& text : context.ranks->all_gather(own.dump())) {
    all.push_back(nlohmann::json::parse(text));
  }
  return all;
}

std::vector<std::int64_t> micro_batch_sizes(const Config& config) {
  const auto& options = strategies::find_strategy(config.strategy).options;
  const bool splits = std::ranges::find(options, "split_size") != options.end();
  std::vector<std::int64_t> sizes;
  for (const auto& share : strategies::share_batch(config.global_batch_size, ranks_of(config))) {
    const auto slices = splits ? strategies::split_batch(share.count, config.split_size)
                               : strategies::share_batch(share.count, config.accumulation_steps);
    for (const auto& slice : slices) sizes.push_back(slice.count);
  }
  return sizes;
}

}  // namespace stratagem::bench
