// measure: the timed steps of one launch. docs/explanation/timing.md draws the timed region.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/config/batches.h"
#include "bench/oracle/fingerprint.h"
#include "bench/predict/memory_watch.h"
#include "bench/timing/lockstep.h"
#include "bench/timing/straggler.h"
#include "bench/timing/warm_up.h"
#include "bench/worker/fault_injection.h"
#include "bench/worker/operator_count.h"
#include "bench/worker/record.h"
#include "bench/worker/session.h"
#include "bench/worker/timed_run.h"
#include "reports/json_fields.h"

namespace stratagem::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Runs the steps of a launch. Their batches take turns; they are in host memory, page-locked if a
/// GPU copies from it.
class StepsInTurn {
 public:
  explicit StepsInTurn(const Session& session) : session_(session) {
    const bool pinned = session.config.device == "cuda";
    const std::int64_t count = different_batches(session.config, elements_of(*session.workload));
    for (std::int64_t index = 0; index < count; ++index) {
      models::Batch batch = session.workload->make_batch(static_cast<std::uint64_t>(index));
      if (pinned) {
        batch.inputs = batch.inputs.pin_memory();
        batch.targets = batch.targets.pin_memory();
      }
      batches_.push_back(std::move(batch));
    }
  }

  /// Enqueues the next step.
  std::unique_ptr<strategies::PendingStep> next() {
    const std::int64_t number = taken_++;
    return is_faulty_ ? faulty_step(number) : session_.strategy->step(batch_of(number));
  }

 private:
  const models::Batch& batch_of(std::int64_t step) const {
    return batches_[static_cast<std::size_t>(step) % batches_.size()];
  }

  std::unique_ptr<strategies::PendingStep> faulty_step(std::int64_t number) {
    const StepFault fault = injected_step_fault(session_.config.strategy, session_.rank(), number);
    const double rate = session_.config.learning_rate;
    session_.strategy->set_learning_rate(fault.rate * rate);
    auto step = session_.strategy->step(batch_of(fault.batch));
    session_.strategy->set_learning_rate(rate);
    return step;
  }

  const Session& session_;
  bool is_faulty_ = faults_are_injected();
  std::vector<models::Batch> batches_;
  std::int64_t taken_ = 0;
};

/// Throws if the first step's loss differs from the verified one of this workload.
void check_first_loss(const std::optional<FirstLoss>& verified, double loss) {
  if (!verified) return;
  const auto [expected, tolerance] = *verified;
  if (std::abs(loss - expected) <= tolerance * std::abs(expected)) return;
  throw std::runtime_error(fmt::format(
      "the first step's loss is {:.9g}, one device's is {:.9g}: apart by more than {:.0e}", loss,
      expected, tolerance));
}

/// Throws if a step's loss is not finite, because the later steps then compute with NaN.
void check_losses(const reports::Repetition& repetition) {
  for (std::size_t step = 0; step < repetition.loss.size(); ++step) {
    if (std::isfinite(repetition.loss[step])) continue;
    throw std::runtime_error(
        fmt::format("the loss of timed step {} is {}; a smaller "
                    "--learning-rate may help",
                    step, repetition.loss[step]));
  }
}

/// Throws if a device of this rank held another amount of the model's state in the timed steps than
/// the strategy's costs predict.
void check_memory(const Session& session) {
  const std::string difference = wrong_memory(session);
  if (!difference.empty()) throw std::runtime_error(difference);
}

/// The losses and skipped updates of all steps since the launch began.
struct StepsSoFar {
  std::vector<double> loss = {};
  std::vector<std::int64_t> skipped = {};

  void add(const strategies::PendingStep& step) {
    if (step.skipped()) skipped.push_back(std::ssize(loss));
    loss.push_back(step.loss());
  }
};

/// Returns the first entry that holds infinity or NaN; empty without one.
std::string not_finite(const Fingerprints& state) {
  const auto found = std::ranges::find_if(
      state, [](const auto& entry) { return !std::isfinite(entry.second.squares); });
  return found == state.end() ? "" : found->first;
}

/// Returns what a launch has computed after its last step, the same on all ranks. Throws
/// std::runtime_error, on all ranks, for an entry that is not finite on one. Collective.
Evidence evidence_of(const Session& session, const TaskContext& context, const StepsSoFar& steps) {
  const Fingerprints own = fingerprints_of(session.strategy->own_state(/*with_gradients=*/false));
  const std::string wrong = not_finite(own);
  const nlohmann::json shared =
      wrong.empty() ? nlohmann::json(reports::json_fields::json_of(own)) : nlohmann::json(wrong);
  Evidence evidence{.loss = steps.loss, .skipped = steps.skipped, .state = {}};
  for (const nlohmann::json& rank : all_gather_json(context, shared)) {
    if (rank.is_string()) {
      throw std::runtime_error(
          fmt::format("{} is not finite after the last step; a smaller --learning-rate may help",
                      rank.get<std::string>()));
    }
    const auto parts = reports::json_fields::read_as<Fingerprints>(rank, "fingerprints");
    for (const auto& [name, part] : parts) evidence.state[name].add(part);
  }
  return evidence;
}

struct WarmUp {
  StepsSoFar steps;
  std::int64_t operators = 0;  // calls of this rank in the second step, like in later ones
  WarmUpCriterion end;
};

WarmUp warm_up(const Session& session, const TaskContext& context, StepsInTurn& steps) {
  WarmUp seen;
  bool should_continue = true;
  while (should_continue) {
    const int step = seen.end.steps();
    std::optional<OperatorCount> count;
    if (step == 1) count.emplace();
    const auto start = Clock::now();
    const auto pending = steps.next();
    synchronize(session);
    if (count) seen.operators = count->calls();
    count.reset();
    should_continue =
        seen.end.should_continue(slowest(context, milliseconds(Clock::now() - start)));
    seen.steps.add(*pending);
  }
  return seen;
}

TimedRun run_steps(const Session& session, const TaskContext& context, StepsInTurn& steps,
                   std::int64_t count, bool watches_cores) {
  const bool isolated = session.config.protocol == "isolated";
  return timed(
      session, context,
      [&](PendingSteps& pending) {
        for (std::int64_t step = 0; step < count; ++step) {
          pending.push_back(steps.next());
          if (isolated) synchronize(session);
        }
      },
      watches_cores);
}

/// Runs the steps one by one, each in this run's turn; the other ranks wait for the first at the
/// step's barrier.
std::vector<TimedRun> run_in_turns(const Session& session, const TaskContext& context,
                                   StepsInTurn& steps, const std::string& socket) {
  std::optional<Lockstep> turns;
  if (session.rank() == 0) turns.emplace(socket, to_milliseconds(session.config.timeout));
  std::vector<TimedRun> runs;
  for (std::int64_t step = 0; step < session.config.steps; ++step) {
    if (turns) turns->wait();
    runs.push_back(run_steps(session, context, steps, 1, /*watches_cores=*/false));
    if (turns) turns->done();
  }
  return runs;
}

/// Returns the median step's record, with the times and losses of all.
reports::Repetition record_of_turns(const Session& session, const TaskContext& context,
                                    const std::vector<TimedRun>& runs,
                                    std::optional<double> peak_gflops, std::int64_t operators) {
  std::vector<double> step_ms;
  for (const TimedRun& run : runs) step_ms.push_back(run.step_ms().front());
  reports::Repetition record =
      record_of(session, context, runs[median_step(step_ms)], peak_gflops, operators);
  record.step_ms = step_ms;
  record.loss.clear();
  record.per_rank_ms.assign(record.per_rank_ms.size(), {});
  for (const TimedRun& run : runs) {
    record.loss.push_back(run.steps.front()->loss());
    for (std::size_t rank = 0; rank < record.per_rank_ms.size(); ++rank) {
      record.per_rank_ms[rank].push_back(run.per_rank_ms[rank].front());
    }
  }
  return record;
}

/// Runs one more step, untimed. Returns what the devices hold in it. Collective.
std::vector<reports::MemoryCurve> watched_step(const Session& session, const TaskContext& context,
                                               StepsInTurn& steps, MemoryWatch& watch,
                                               const schedules::Execution& like) {
  watch.begin(session.group.devices, like);
  const auto step = steps.next();
  synchronize(session);
  return memory_curve_of(session, context, step->execution(), watch.end());
}

MeasureResult steady(Session& session, const TaskContext& context, const MeasureJob& job,
                     MemoryWatch& watch) {
  StepsInTurn steps(session);
  WarmUp warm = warm_up(session, context, steps);
  check_first_loss(job.first_loss, warm.steps.loss.front());
  for (const auto& device : session.group.devices) device->reset_peak_memory();
  MeasureResult result;
  reports::Repetition& repetition = result.repetitions.emplace_back();
  schedules::Execution last;
  if (!job.turns.empty()) {
    const auto runs = run_in_turns(session, context, steps, job.turns);
    repetition = record_of_turns(session, context, runs, job.peak_gflops, warm.operators);
  } else {
    const TimedRun run =
        run_steps(session, context, steps, session.config.steps, /*watches_cores=*/true);
    repetition = record_of(session, context, run, job.peak_gflops, warm.operators);
    if (job.trace) result.trace = trace_of(session, context, run);
    for (const auto& step : run.steps) warm.steps.add(*step);
    last = run.executions.back();
  }
  check_memory(session);
  check_losses(repetition);
  if (job.evidence) result.evidence.push_back(evidence_of(session, context, warm.steps));
  if (job.memory && !last.empty()) {
    repetition.memory_curve = watched_step(session, context, steps, watch, last);
  }
  repetition.counters["warm_up_steps"] = warm.end.steps();
  if (!warm.end.stationary()) repetition.marks.emplace_back("not_stationary");
  return result;
}

/// Runs one repeat of the tutorial: a new model, then `steps` batches whose data is made inside the
/// timed region. The tutorial timed the call that trains all batches: the sum of the steps, which
/// leave no gap.
TimedRun tutorial_repeat(Session& session, const TaskContext& context) {
  session.strategy.reset();  // the old model goes before the new one comes
  session.strategy = session.make_strategy();
  for (const auto& device : session.group.devices) device->reset_peak_memory();
  return timed(session, context, [&](PendingSteps& steps) {
    for (std::int64_t step = 0; step < session.config.steps; ++step) {
      const models::Batch batch = session.workload->make_batch(static_cast<std::uint64_t>(step));
      steps.push_back(session.strategy->step(batch));
    }
  });
}

MeasureResult tutorial(Session& session, const TaskContext& context, const MeasureJob& job) {
  MeasureResult result;
  for (std::int64_t repeat = 0; repeat < session.config.repetitions; ++repeat) {
    const TimedRun run = tutorial_repeat(session, context);
    if (repeat == 0) check_first_loss(job.first_loss, run.steps.front()->loss());
    result.repetitions.push_back(record_of(session, context, run, job.peak_gflops, std::nullopt));
    result.repetitions.back().index = static_cast<int>(repeat);
    check_memory(session);
    check_losses(result.repetitions.back());
    if (!job.evidence) continue;
    StepsSoFar steps;
    for (const auto& step : run.steps) steps.add(*step);
    result.evidence.push_back(evidence_of(session, context, steps));
  }
  return result;
}

/// Returns a hook that calls `watch` before `hook`, which may be empty.
ActionHook watched(MemoryWatch& watch, ActionHook hook) {
  return [&watch, hook = std::move(hook)](const schedules::Action& action) {
    watch.before(action);
    if (hook) hook(action);
  };
}

}  // namespace

MeasureResult measure(const MeasureJob& job, const TaskContext& context) {
  const Config& config = job.config;
  const int rank = context.ranks ? context.ranks->info().rank : 0;
  const auto straggler = straggler_of(config, placement_of(config).ranks);
  MemoryWatch watch;  // outlives the devices' threads
  std::optional<Session> session;
  const AllRanks all_ranks = [&session] { return session->groups.view().all; };
  ActionHook hook = with_straggler(
      straggler, rank, injected_fault(FaultyTask::measure, config.strategy, rank, all_ranks));
  if (job.memory) hook = watched(watch, std::move(hook));
  session.emplace(config, workload_options(config), context, std::move(hook));
  MeasureResult result = config.protocol == "tutorial" ? tutorial(*session, context, job)
                                                       : steady(*session, context, job, watch);
  if (faults_are_injected()) {
    for (auto& repetition : result.repetitions) repetition.marks.emplace_back("test_fault");
  }
  return result;
}

}  // namespace stratagem::bench
