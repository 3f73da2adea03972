// Session: what every task builds from a row's configuration: workload, devices, strategy.
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

/// Throws std::invalid_argument for a name that is unknown.
models::WorkloadOptions workload_options(const Config& config);

/// What this process sees, as assign_gpus() wants it.
ranks::VisibleGpus visible_gpus();

/// This rank's devices of a row: on CPUs the cores, of those that the process may use, that each is
/// pinned to. With --oversubscribe devices share cores. Without ranks in `context`, the devices of
/// all of the row's ranks, as far as this process sees so many GPUs. Collective.
backends::DeviceGroupOptions device_options(const Config& config, const Placement& placement,
                                            const TaskContext& context);
/// The devices themselves. Sets the process's numerics (TF32, cuDNN) too.
backends::DeviceGroup open_devices(const Config& config, const Placement& placement,
                                   const TaskContext& context);

using ActionHook = std::function<void(const schedules::Action&)>;

/// Members are destroyed in reverse: the strategy before its devices.
struct Session {
  Session(const Config& config, const models::WorkloadOptions& options, const TaskContext& context,
          ActionHook fault = {});
  std::unique_ptr<strategies::Strategy> make_strategy() const;

  /// What moved since the last reset: between ranks, and between the devices of this one.
  strategies::CommunicationCounts counts() const;
  void reset_counts() const;

  int rank() const { return groups.rank(); }
  int ranks() const { return groups.ranks(); }

  Config config;
  Placement placement;
  std::unique_ptr<models::Workload> workload;
  backends::DeviceGroup group;
  /// Whether CPU devices share cores, on any rank; asked before the groups pin this thread.
  bool oversubscribed;
  JobGroups groups;
  ActionHook before_action;
  std::unique_ptr<strategies::Strategy> strategy;
  AbortOnException abort_on_exception{groups};
};

/// Of a step on the workload's batch.
strategies::Costs costs_of_a_step(const Session& session);

/// The elements of a batch's inputs, as different_batches() takes them.
std::int64_t elements_of(const models::Workload& workload);

/// What is wrong with the memory of the strategy's state since the peaks were reset: see
/// backends::difference_from_costs. Empty where it is as the strategy's costs say.
std::string wrong_memory(const Session& session);

/// What every rank says, by rank; collective.
std::vector<nlohmann::json> all_gather_json(const TaskContext& context, const nlohmann::json& own);

/// What of the row's model decides what a verification can shrink.
ScopeTraits scope_traits(const Config& config);

}  // namespace stratagem::bench
