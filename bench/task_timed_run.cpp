#include "bench/task_timed_run.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

namespace stratagem::bench {
namespace {

using Clock = TimedRun::Clock;

double processor_milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

/// When this rank's devices ended each step, and when it came to each collective, from the start.
nlohmann::json own_times(const TimedRun& run) {
  std::vector<double> ends;
  std::vector<double> collectives;
  double reached = 0;
  for (const pipeline::Execution& step : run.executions) {
    // A device that ends early starts the next step at once; the step itself ends with the last.
    reached = std::max(reached, milliseconds(pipeline::end_of(step) - run.start));
    ends.push_back(reached);
    for (const auto& entry : step) {
      if (!pipeline::is_collective(entry.action.kind)) continue;
      collectives.push_back(milliseconds(entry.start->time() - run.start));
    }
  }
  return {{"ends", ends}, {"collectives", collectives}};
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

/// The wait for gradients ends with the last bucket: it waits for the peers of that.
void pass_peers_to_the_wait(pipeline::Execution& step) {
  std::optional<Clock::time_point> last;
  for (const auto& entry : step) {
    if (entry.action.kind == pipeline::ActionKind::all_reduce) last = entry.peers;
  }
  for (auto& entry : step) {
    if (entry.action.kind == pipeline::ActionKind::gradient_wait) entry.peers = last;
  }
}

/// Tells the ranks when the others ended their steps and came to their collectives.
void agree(TimedRun& run, const TaskContext& context) {
  const std::vector<nlohmann::json> by_rank = tell_all_ranks(context, own_times(run));
  std::vector<double> ends(run.steps.size(), 0);
  std::vector<double> collectives;
  const auto take_latest = [](std::vector<double>& latest, const std::vector<double>& own) {
    latest.resize(own.size(), 0);
    std::ranges::transform(latest, own, latest.begin(),
                           [](double left, double right) { return std::max(left, right); });
  };
  for (const nlohmann::json& rank : by_rank) {
    const auto own_ends = rank.at("ends").get<std::vector<double>>();
    take_latest(ends, own_ends);
    take_latest(collectives, rank.at("collectives").get<std::vector<double>>());
    run.per_rank_ms.push_back(differences(own_ends));
  }
  for (const double end : ends) run.ends.push_back(moment(run, end));
  std::size_t index = 0;
  for (pipeline::Execution& step : run.executions) {
    for (auto& entry : step) {
      if (pipeline::is_collective(entry.action.kind)) {
        entry.peers = moment(run, collectives[index++]);
      }
    }
    pass_peers_to_the_wait(step);
  }
}

}  // namespace

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void synchronize(const Session& session) {
  runtime::synchronize_all(session.group.devices, timeout_of(session.config));
}

double slowest(const TaskContext& context, double milliseconds) {
  for (const nlohmann::json& other : tell_all_ranks(context, milliseconds)) {
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
               const std::function<void(PendingSteps&)>& enqueue_steps) {
  TimedRun run;
  synchronize(session);
  if (session.data_group) {
    session.data_group->reset_counts();
    session.data_group->barrier();
  }
  const double processor_before = processor_milliseconds();
  run.start = Clock::now();
  enqueue_steps(run.steps);
  synchronize(session);
  run.processor_ms = processor_milliseconds() - processor_before;
  if (session.data_group) run.communication = session.data_group->counts();
  for (const auto& step : run.steps) run.executions.push_back(step->execution());
  agree(run, context);
  return run;
}

}  // namespace stratagem::bench
