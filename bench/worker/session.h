// Session: the workload, devices and strategy that every task builds from a row's configuration.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "bench/config/config.h"
#include "bench/config/placement.h"
#include "bench/oracle/arithmetic_scope.h"
#include "bench/worker/job_groups.h"
#include "bench/worker/tasks.h"
#include "models/workload.h"
#include "strategies/backends/backend.h"
#include "strategies/distributed/rank_context.h"
#include "strategies/ranks/gpu_assignment.h"
#include "strategies/registry.h"
#include "strategies/strategy.h"

namespace stratagem::bench {

/// Throws std::invalid_argument for an unknown name.
models::WorkloadOptions workload_options(const Config& config);

/// Returns the GPUs of this process for assign_gpus().
ranks::VisibleGpus visible_gpus();

/// Returns this rank's devices of a row: on CPUs the cores, of those that the process may use, that
/// each is pinned to. With --oversubscribe devices share cores. Without ranks in `context`, returns
/// the devices of all of the row's ranks, or as many GPUs as this process has. Collective.
backends::DeviceGroupOptions device_options(const Config& config, const Placement& placement,
                                            const TaskContext& context);
/// Opens the devices. Sets the process's numerics (TF32, cuDNN) too.
backends::DeviceGroup open_devices(const Config& config, const Placement& placement,
                                   const TaskContext& context);

using ActionHook = std::function<void(const schedules::Action&)>;

/// Members are destroyed in reverse: the strategy before its devices.
struct Session {
  Session(const Config& config, const models::WorkloadOptions& options, const TaskContext& context,
          ActionHook fault = {});
  std::unique_ptr<strategies::Strategy> make_strategy() const;

  /// Returns what moved since the last reset: between ranks, and between this one's devices.
  strategies::CommunicationCounts counts() const;
  void reset_counts() const;

  int rank() const { return groups.rank(); }
  int ranks() const { return groups.ranks(); }

  Config config;
  Placement placement;
  std::unique_ptr<models::Workload> workload;
  backends::DeviceGroup group;
  /// True if CPU devices share cores on any rank; asked before the groups pin this thread.
  bool oversubscribed;
  JobGroups groups;
  ActionHook before_action;
  std::unique_ptr<strategies::Strategy> strategy;
  AbortOnException abort_on_exception{groups};
};

/// Returns the costs of a step on the workload's batch.
strategies::Costs costs_of_a_step(const Session& session);

/// Returns the elements of a batch's inputs, for different_batches().
std::int64_t elements_of(const models::Workload& workload);

/// Returns how the memory of the strategy's state differs from its costs since the peaks were
/// reset: see backends::difference_from_costs. Empty if it does not differ.
std::string wrong_memory(const Session& session);

/// Returns every rank's `own`, by rank; collective.
std::vector<nlohmann::json> all_gather_json(const TaskContext& context, const nlohmann::json& own);

/// Returns the number of equal parts into which the row's ranks cut a sequence.
std::int64_t parts_of_a_sequence(const Config& config);

/// Returns the traits of the row's model that limit how far a verification can shrink it.
ScopeTraits scope_traits(const Config& config);

/// Returns how many values of a channel one sample gives to a BatchNorm, at least: the positions of
/// the smallest feature map between two layers.
std::int64_t fewest_positions(const models::Workload& workload);

}  // namespace stratagem::bench
