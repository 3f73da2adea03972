// Session: what every task builds from a row's configuration: workload, devices, strategy.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "bench/config.h"
#include "bench/tasks.h"
#include "models/workload.h"
#include "strategies/registry.h"
#include "strategies/runtime/backend.h"
#include "strategies/strategy.h"

namespace stratagem::bench {

/// Throws std::invalid_argument for a name that is unknown.
models::WorkloadOptions workload_options(const Config& config);

/// The devices of a row, pinned to the cores that the process may use. With --oversubscribe devices
/// share cores. Sets the process's numerics (TF32, cuDNN) too.
runtime::DeviceGroup open_devices(const Config& config, const TaskContext& context);

std::chrono::milliseconds timeout_of(const Config& config);

using ActionHook = std::function<void(const pipeline::Action&)>;

/// Members are destroyed in reverse: the strategy before its devices.
struct Session {
  Session(const Config& config, const models::WorkloadOptions& options, const TaskContext& context,
          ActionHook fault = {});
  std::unique_ptr<strategies::Strategy> make_strategy() const;

  Config config;
  std::unique_ptr<models::Workload> workload;
  runtime::DeviceGroup group;
  ActionHook before_action;
  std::unique_ptr<strategies::Strategy> strategy;
};

/// How many stages a row has: its devices where the strategy spreads over them, else one.
int stages_of(const Config& config);

/// Samples in each micro-batch of a row, in order.
std::vector<std::int64_t> micro_batch_sizes(const Config& config);

}  // namespace stratagem::bench
