// measure: the timed steps of one launch. docs/measuring.md draws what lies inside the timed
// region.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "bench/options.h"
#include "bench/straggler.h"
#include "bench/task_fault.h"
#include "bench/task_operator_count.h"
#include "bench/task_session.h"
#include "bench/task_timed_run.h"
#include "reports/record_json.h"

namespace stratagem::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// The global batch in host memory, page-locked where a GPU copies from it.
models::Batch host_batch(const Session& session, std::uint64_t index) {
  models::Batch batch = session.workload->make_batch(index);
  if (session.config.device != "cuda") return batch;
  return {batch.inputs.pin_memory(), batch.targets.pin_memory()};
}

/// Throws when the first step's loss is not the one that verification found for this workload.
void check_first_loss(const nlohmann::json& verification, double loss) {
  if (!verification.is_object() || !verification.contains("reference_loss")) return;
  const double expected = verification.at("reference_loss").get<double>();
  const double tolerance = verification.at("loss_tolerance").get<double>();
  if (std::abs(loss - expected) <= tolerance * std::abs(expected)) return;
  throw std::runtime_error(fmt::format(
      "the first step's loss is {:.9g}, one device's is {:.9g}: apart by more than {:.0e}", loss,
      expected, tolerance));
}

/// Steps until two in a row take the same time within 5%, at most ten or two seconds, and at least
/// two: the second still touches new memory and was seen to take 15% longer than later ones.
struct WarmUp {
  double first_loss = 0;
  std::int64_t operators = 0;  // that this rank called in the second step, which is like all later
};

WarmUp warm_up(const Session& session, const TaskContext& context, const models::Batch& batch) {
  constexpr int most_steps = 10;
  constexpr double same = 0.05;
  constexpr double enough_ms = 2000;
  WarmUp seen;
  double previous = 0;
  double total = 0;
  for (int step = 0; step < most_steps; ++step) {
    std::optional<OperatorCount> count;
    if (step == 1) count.emplace();
    const auto start = Clock::now();
    const auto pending = session.strategy->step(batch);
    synchronize(session);
    if (count) seen.operators = count->calls();
    count.reset();
    const double took = slowest(context, milliseconds(Clock::now() - start));
    if (step == 0) seen.first_loss = pending->loss();
    total += took;
    const bool stationary = std::abs(took - previous) <= same * previous;
    if (step > 0 && (stationary || total > enough_ms)) break;
    previous = took;
  }
  return seen;
}

TimedRun run_steps(const Session& session, const TaskContext& context, const models::Batch& batch,
                   bool isolated) {
  return timed(session, context, [&](PendingSteps& steps) {
    for (std::int64_t step = 0; step < session.config.steps; ++step) {
      steps.push_back(session.strategy->step(batch));
      if (isolated) synchronize(session);
    }
  });
}

reports::Breakdown per_step(const runtime::StepBreakdown& total, double steps) {
  return {.compute = total.compute / steps,
          .communication_exposed = total.communication_exposed / steps,
          .communication_hidden = total.communication_hidden / steps,
          .wait = total.wait / steps,
          .bubble = total.bubble / steps,
          .optimizer = total.optimizer / steps,
          .input_copy = total.input_copy / steps,
          .other = total.other / steps};
}

runtime::Timeline whole_timeline(const TimedRun& run) {
  std::vector<const pipeline::Execution*> all;
  for (const auto& step : run.executions) all.push_back(&step);
  return pipeline::timeline_of(all, run.start, run.ends.back());
}

/// A device's number in the job: each rank has as many.
int number_in_job(const Session& session, int device) {
  return session.rank() * static_cast<int>(session.group.devices.size()) + device;
}

std::vector<reports::DeviceRecord> device_records(const Session& session, const TimedRun& run) {
  const auto costs = session.strategy->costs();
  const auto timeline = whole_timeline(run);
  std::vector<reports::DeviceRecord> records;
  for (const auto& device : session.group.devices) {
    const int index = device->description().index;
    const auto total = runtime::breakdown(timeline, index, costs.stages);
    records.push_back({.rank = session.rank(),
                       .device = number_in_job(session, index),
                       .breakdown_ms = per_step(total, static_cast<double>(run.steps.size())),
                       .bubble_measured = total.bubble / timeline.step_ms,
                       .bubble_ideal = costs.ideal_bubble,
                       .peak_memory_bytes = device->memory().peak_bytes});
  }
  return records;
}

std::vector<reports::TimelineEvent> events_of(const Session& session,
                                              const runtime::Timeline& timeline) {
  std::vector<reports::TimelineEvent> events;
  for (const auto& entry : timeline.entries) {
    // A device may load the next step's targets while another still finishes this one.
    if (entry.end_ms <= 0 && entry.start_ms <= 0) continue;
    events.push_back({.device = number_in_job(session, entry.device),
                      .kind = std::string(pipeline::name(entry.action.kind)),
                      .stage = entry.action.stage,
                      .micro_batch = entry.action.micro_batch,
                      .start_ms = entry.start_ms,
                      .end_ms = entry.end_ms});
  }
  return events;
}

/// The step whose duration is the (lower) median.
std::size_t median_step(const std::vector<double>& durations) {
  std::vector<std::size_t> order(durations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t step) { return durations[step]; });
  return order[(order.size() - 1) / 2];
}

std::vector<reports::TimelineEvent> median_timeline(const Session& session, const TimedRun& run) {
  const std::size_t step = median_step(run.step_ms());
  const auto origin = step == 0 ? run.start : run.ends[step - 1];
  return events_of(session, pipeline::timeline_of({&run.executions[step]}, origin, run.ends[step]));
}

std::optional<double> utilisation(const Session& session, const nlohmann::json& job, double flops,
                                  double step_ms) {
  if (!job.contains("peak_gflops") || job.at("peak_gflops").is_null()) return std::nullopt;
  const double peak =
      job.at("peak_gflops").get<double>() * 1e9 *
      static_cast<double>(session.group.devices.size() * static_cast<std::size_t>(session.ranks()));
  return flops / (step_ms / 1e3) / peak;
}

std::map<std::string, reports::CollectiveCount> per_step(const runtime::CommunicationCounts& counts,
                                                         std::int64_t steps) {
  std::map<std::string, reports::CollectiveCount> result;
  for (const auto& [collective, count] : counts) {
    result[collective] = {.calls = count.calls / steps,
                          .payload_bytes = count.payload_bytes / steps,
                          .wire_bytes = count.wire_bytes / steps};
  }
  return result;
}

/// The most of what ranks hold at a time, the sum of what they call.
void merge_counters(std::map<std::string, double>& counters, const nlohmann::json& rank,
                    bool first) {
  auto& live = counters["live_micro_batches"];
  live = std::max(live, rank.at("live_micro_batches").get<double>());
  if (!rank.contains("aten_operators")) return;
  auto& operators = counters["aten_operators"];
  operators = (first ? 0 : operators) + rank.at("aten_operators").get<double>();
}

/// Adds what the other ranks have seen of their own devices.
void merge_ranks(reports::Repetition& repetition, const TaskContext& context) {
  nlohmann::json devices = nlohmann::json::array();
  for (const auto& device : repetition.devices) {
    devices.push_back(nlohmann::json(reports::to_json(device)));
  }
  const std::vector<nlohmann::json> by_rank =
      tell_all_ranks(context, {{"devices", devices},
                               {"timeline", reports::to_json(repetition.timeline)},
                               {"counters", repetition.counters},
                               {"cpu_ms", repetition.cpu_ms}});
  repetition.devices.clear();
  repetition.timeline.clear();
  repetition.cpu_ms = 0;
  bool first = true;
  for (const nlohmann::json& rank : by_rank) {
    for (const nlohmann::json& device : rank.at("devices")) {
      repetition.devices.push_back(reports::device_record_from_json(device, "devices"));
    }
    const auto events = reports::timeline_from_json(rank.at("timeline"), "timeline");
    repetition.timeline.insert(repetition.timeline.end(), events.begin(), events.end());
    repetition.cpu_ms += rank.at("cpu_ms").get<double>();
    merge_counters(repetition.counters, rank.at("counters"), first);
    first = false;
  }
}

/// `warm` is absent where there was no warm-up to count in.
reports::Repetition record_of(const Session& session, const TaskContext& context,
                              const TimedRun& run, const nlohmann::json& job,
                              const std::optional<WarmUp>& warm) {
  reports::Repetition repetition;
  const auto steps = static_cast<std::int64_t>(run.steps.size());
  repetition.step_ms = run.step_ms();
  repetition.per_rank_ms = run.per_rank_ms;
  repetition.cpu_ms = run.processor_ms / static_cast<double>(steps);
  repetition.devices = device_records(session, run);
  repetition.timeline = median_timeline(session, run);
  repetition.communication = per_step(run.communication, steps);
  repetition.flops_per_step = session.strategy->costs().flops;
  const double mean = milliseconds(run.ends.back() - run.start) / static_cast<double>(steps);
  repetition.mfu = utilisation(session, job, repetition.flops_per_step, mean);
  for (const auto& step : run.steps) repetition.loss.push_back(step->loss());
  repetition.counters["live_micro_batches"] = session.strategy->costs().live_micro_batches;
  if (warm) repetition.counters["aten_operators"] = static_cast<double>(warm->operators);
  if (const auto tokens = static_cast<double>(session.workload->sequence_length() *
                                              session.config.global_batch_size);
      tokens > 0) {
    repetition.counters["tokens_per_second"] = 1e3 * tokens / mean;
  }
  if (session.ranks() > 1) merge_ranks(repetition, context);
  if (session.oversubscribed) repetition.marks.emplace_back("oversubscribed");
  return repetition;
}

/// Every rank's part of the trace.
nlohmann::json trace_of(const Session& session, const TaskContext& context, const TimedRun& run) {
  nlohmann::json all = nlohmann::json::array();
  const nlohmann::json own = reports::to_json(events_of(session, whole_timeline(run)));
  for (const nlohmann::json& rank : tell_all_ranks(context, own)) {
    all.insert(all.end(), rank.begin(), rank.end());
  }
  return all;
}

nlohmann::json steady(Session& session, const TaskContext& context, const nlohmann::json& job) {
  const models::Batch batch = host_batch(session, 0);
  const WarmUp warm = warm_up(session, context, batch);
  check_first_loss(job.value("verification", nlohmann::json()), warm.first_loss);
  for (const auto& device : session.group.devices) device->reset_peak_memory();
  const TimedRun run = run_steps(session, context, batch, session.config.protocol == "isolated");
  const reports::Repetition repetition = record_of(session, context, run, job, warm);
  nlohmann::json result = {{"repetition", reports::to_json(repetition)}};
  if (job.value("trace", false)) result["trace"] = trace_of(session, context, run);
  return result;
}

/// One repeat of the tutorial: a new model, then `steps` batches whose data is made inside the
/// timed region. What the tutorial timed is the call that trains all batches: the sum of the steps,
/// which leave no gap.
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

nlohmann::json tutorial(Session& session, const TaskContext& context, const nlohmann::json& job) {
  nlohmann::json repetitions = nlohmann::json::array();
  for (std::int64_t repeat = 0; repeat < session.config.repetitions; ++repeat) {
    const TimedRun run = tutorial_repeat(session, context);
    if (repeat == 0) {
      check_first_loss(job.value("verification", nlohmann::json()), run.steps.front()->loss());
    }
    reports::Repetition repetition = record_of(session, context, run, job, std::nullopt);
    repetition.index = static_cast<int>(repeat);
    repetitions.push_back(nlohmann::json(reports::to_json(repetition)));
  }
  return {{"repetitions", repetitions}};
}

}  // namespace

nlohmann::json measure_task(const nlohmann::json& job, const TaskContext& context) {
  const Config config = config_from_json(job.at("config"));
  const int rank = context.ranks ? context.ranks->place().rank : 0;
  const Placement placement = placement_of(config);
  const auto straggler = straggler_of(config, placement.ranks);
  const int first_stage =
      placement.pipeline_rank_of(rank) * placement.pipeline_devices() / placement.pipeline_ranks();
  std::optional<Session> session;
  const AllRanks all_ranks = [&session] { return session->groups.view().all; };
  session.emplace(config, workload_options(config), context,
                  with_straggler(straggler, rank, first_stage,
                                 fault_on_purpose(config.strategy, rank, all_ranks)));
  return config.protocol == "tutorial" ? tutorial(*session, context, job)
                                       : steady(*session, context, job);
}

}  // namespace stratagem::bench
