#include "bench/worker/timed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "bench/machine/noise_sources.h"

namespace stratagem::bench {
namespace {

using Clock = TimedRun::Clock;

/// The parts of the job that a rank has.
struct Coordinates {
  int replica = 0;
  int copy = 0;                  // of the layers: replicas times parts of the positions
  int part = 0;                  // the rank's part of its layers
  bool sums_norms_alone = true;  // a copy does; else its shard group
  int shard_group = 0;           // index among the groups of replicas
  int shard = 0;                 // the rank's part of the state

  explicit Coordinates(const Session& session) {
    const auto groups = session.groups.view();
    const int contexts = session.placement.context_ranks();
    replica = groups.replica;
    copy = replica * contexts + (groups.context == nullptr ? 0 : groups.context->rank());
    part = groups.tensor == nullptr ? 0 : groups.tensor->rank();
    sums_norms_alone = sharded_state(session.config) == "none";
    const int shards = session.placement.replicas() * contexts / copies_of(session.config);
    shard_group = copy / shards;
    shard = copy % shards;
  }
};

/// Returns the key of a moment of a step on every rank that takes part in it: replicas' exchanges
/// have one key for all that hold the same part and, except for buffers, shard it together;
/// exchanges of a shard's copies one for all copies; a layer's exchanges one for all ranks that
/// share it; attention's one for all ranks that share its samples; a send that of the receiver of
/// the same part in the same copy.
std::string key_of(const schedules::Action& action, const Coordinates& own) {
  const std::string name = to_string(action);
  if (schedules::is_replicas_own(action.kind)) {
    if (!own.sums_norms_alone) {
      return fmt::format("{} of group {}", schedules::name(action.kind), own.shard_group);
    }
    return fmt::format("{} of copy {}", schedules::name(action.kind), own.copy);
  }
  if (schedules::is_tensor_collective(action.kind)) {
    return fmt::format("{} of copy {}", name, own.copy);
  }
  if (schedules::is_context_collective(action.kind)) {
    return fmt::format("{} of replica {} part {}", name, own.replica, own.part);
  }
  if (schedules::is_of_copies(action.kind)) {
    return fmt::format("{} of part {} shard {}", name, own.part, own.shard);
  }
  if (schedules::is_of_shards(action.kind)) {
    return fmt::format("{} of part {} group {}", name, own.part, own.shard_group);
  }
  if (schedules::is_collective(action.kind)) return fmt::format("{} of part {}", name, own.part);
  return fmt::format("{} of copy {} part {}", name, own.copy, own.part);
}

/// Returns when this rank's devices ended each step, from the start, and when they arrived where
/// other ranks wait for them.
nlohmann::json own_times(const Session& session, const TimedRun& run) {
  const Coordinates coordinates(session);
  std::vector<double> ends;
  nlohmann::json steps = nlohmann::json::array();
  double reached = 0;
  for (const schedules::Execution& step : run.executions) {
    // A device that ends early starts the next step at once; the step itself ends with the last.
    reached = std::max(reached, milliseconds(schedules::end_of(step) - run.start));
    ends.push_back(reached);
    nlohmann::json starts = nlohmann::json::object();
    for (const auto& entry : step) {
      if (!schedules::is_collective(entry.action.kind) && !schedules::is_send(entry.action.kind)) {
        continue;
      }
      starts[key_of(entry.action, coordinates)] = milliseconds(entry.start->time() - run.start);
    }
    steps.push_back(std::move(starts));
  }
  return {{"ends", ends}, {"starts", steps}};
}

Clock::time_point moment(const TimedRun& run, double milliseconds) {
  return run.start + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double, std::milli>(milliseconds));
}

std::vector<double> differences(const std::vector<double>& ends) {
  std::vector<double> durations(ends.size());
  std::adjacent_difference(ends.begin(), ends.end(), durations.begin());
  return durations;
}

/// A wait for a transfer waits for the peers of the transfer.
void pass_peers_to_the_waits(schedules::Execution& step) {
  std::map<schedules::Action, std::optional<Clock::time_point>> peers;  // by awaited transfer
  for (const auto& entry : step) {
    if (schedules::is_in_flight(entry.action.kind)) peers[entry.action] = entry.peers;
  }
  for (auto& entry : step) {
    const auto awaited = schedules::awaited_transfer(entry.action);
    const auto found = awaited ? peers.find(*awaited) : peers.end();
    if (found != peers.end()) entry.peers = found->second;
  }
}

/// Returns the latest start of all ranks, by step and key.
std::vector<std::map<std::string, double>> latest_starts(const std::vector<nlohmann::json>& by_rank,
                                                         std::size_t steps) {
  std::vector<std::map<std::string, double>> latest(steps);
  for (const nlohmann::json& rank : by_rank) {
    for (std::size_t step = 0; step < steps; ++step) {
      for (const auto& [key, start] : rank.at("starts").at(step).items()) {
        double& known = latest[step][key];
        known = std::max(known, start.get<double>());
      }
    }
  }
  return latest;
}

/// Exchanges when the ranks ended their steps, arrived at their collectives and sent what other
/// ranks receive.
void agree(const Session& session, TimedRun& run, const TaskContext& context) {
  const std::vector<nlohmann::json> by_rank = all_gather_json(context, own_times(session, run));
  std::vector<double> ends(run.steps.size(), 0);
  for (const nlohmann::json& rank : by_rank) {
    const auto own_ends = rank.at("ends").get<std::vector<double>>();
    std::ranges::transform(ends, own_ends, ends.begin(),
                           [](double left, double right) { return std::max(left, right); });
    run.per_rank_ms.push_back(differences(own_ends));
  }
  for (const double end : ends) run.ends.push_back(moment(run, end));
  const auto starts = latest_starts(by_rank, run.steps.size());
  const Coordinates coordinates(session);
  for (std::size_t step = 0; step < run.executions.size(); ++step) {
    for (auto& entry : run.executions[step]) {
      schedules::Action awaited = entry.action;
      if (schedules::is_receive(awaited.kind)) {
        awaited = schedules::sender_of(awaited);
      } else if (!schedules::is_collective(awaited.kind)) {
        continue;
      }
      entry.peers = moment(run, starts[step].at(key_of(awaited, coordinates)));
    }
    pass_peers_to_the_waits(run.executions[step]);
  }
}

/// Watches this rank's own cores. It subtracts the whole process's time from theirs, so the time of
/// other programs is a lower bound if the main thread works beside the devices.
class CoreWatch {
 public:
  explicit CoreWatch(const Session& session) {
    for (const auto& device : session.group.devices) {
      const std::vector<int>& cores = device->description().cores;
      cores_.insert(cores_.end(), cores.begin(), cores.end());
    }
    if (!cores_.empty()) before_ = read_processor_times({}, cores_);
  }

  std::optional<reports::OwnCores> seen() const {
    if (cores_.empty()) return std::nullopt;
    const NoiseCounters now = read_processor_times({}, cores_);
    const double busy = now.busy_seconds - before_.busy_seconds;
    const double own = now.own_seconds - before_.own_seconds;
    return reports::OwnCores{.cores = {cores_.begin(), cores_.end()},
                             .seconds = now.seconds - before_.seconds,
                             .others_s = std::max(0.0, busy - own),
                             .stolen_s = now.stolen_seconds - before_.stolen_seconds,
                             .page_faults = now.own_page_faults - before_.own_page_faults};
  }

 private:
  std::vector<int> cores_;
  NoiseCounters before_;
};

}  // namespace

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double processor_milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

void synchronize(const Session& session) {
  runtime::synchronize_all(session.group.devices, to_milliseconds(session.config.timeout));
}

double slowest(const TaskContext& context, double milliseconds) {
  for (const nlohmann::json& other : all_gather_json(context, milliseconds)) {
    milliseconds = std::max(milliseconds, other.get<double>());
  }
  return milliseconds;
}

std::vector<double> TimedRun::step_ms() const {
  std::vector<double> durations;
  Clock::time_point previous = start;
  for (const auto end : ends) {
    durations.push_back(milliseconds(end - previous));
    previous = end;
  }
  return durations;
}

TimedRun timed(const Session& session, const TaskContext& context,
               const std::function<void(PendingSteps&)>& enqueue_steps, bool watches_cores) {
  TimedRun run;
  synchronize(session);
  for (const auto& device : session.group.devices) device->synchronize_clock();
  std::optional<CoreWatch> watch;
  if (watches_cores) watch.emplace(session);
  session.groups.barrier();
  session.reset_counts();
  const double processor_before = processor_milliseconds();
  run.start = Clock::now();
  enqueue_steps(run.steps);
  synchronize(session);
  run.processor_ms = processor_milliseconds() - processor_before;
  if (watch) run.own_cores = watch->seen();
  run.communication = session.counts();
  for (const auto& step : run.steps) run.executions.push_back(step->execution());
  agree(session, run, context);
  return run;
}

}  // namespace stratagem::bench
