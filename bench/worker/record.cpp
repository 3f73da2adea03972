#include "bench/worker/record.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "bench/machine/machine.h"
#include "bench/timing/breakdown.h"
#include "bench/timing/per_step.h"
#include "models/cpu_kernels/kernel_choice.h"
#include "reports/json_fields.h"
#include "reports/statistics.h"

namespace stratagem::bench {
namespace {

using reports::json_fields::json_of;

schedules::Timeline whole_timeline(const TimedRun& run) {
  std::vector<const schedules::Execution*> all;
  for (const auto& step : run.executions) all.push_back(&step);
  return schedules::timeline_of(all, run.start, run.ends.back());
}

/// Returns a device's number in the job: each rank has the same number of devices.
int number_in_job(const Session& session, int device) {
  return session.rank() * static_cast<int>(session.group.devices.size()) + device;
}

/// Returns the memory by purpose; empty if the device does not count it.
std::map<std::string, reports::CategoryMemory> memory_by_category(
    const runtime::MemoryStatistics& memory, const strategies::StateBytes* formula) {
  using runtime::MemoryCategory;
  std::map<std::string, reports::CategoryMemory> all;
  if (!memory.by_category) return all;
  for (std::size_t index = 0; index < runtime::memory_categories; ++index) {
    const auto category = static_cast<MemoryCategory>(index);
    all[name(category)] = {.peak = memory.by_category->peak[category],
                           .at_peak = memory.by_category->at_peak[category],
                           .formula = {}};
  }
  if (formula == nullptr) return all;
  all.at(name(MemoryCategory::parameters)).formula = formula->parameters;
  all.at(name(MemoryCategory::gradients)).formula = formula->gradients;
  all.at(name(MemoryCategory::optimizer)).formula = formula->optimizer;
  return all;
}

std::vector<reports::DeviceRecord> device_records(const Session& session, const TimedRun& run) {
  const auto costs = costs_of_a_step(session);
  const auto timeline = whole_timeline(run);
  const auto steps = static_cast<double>(run.steps.size());
  std::vector<reports::DeviceRecord> records;
  for (const auto& device : session.group.devices) {
    const int index = device->description().index;
    const auto place = static_cast<std::size_t>(index);
    const runtime::MemoryStatistics memory = device->memory();
    reports::Breakdown parts = breakdown(timeline, index, costs.stages);
    const double bubble = parts.bubble / timeline.step_ms;
    each_field(parts, [&](std::string_view, double& part) { part /= steps; });
    records.push_back({.rank = session.rank(),
                       .device = number_in_job(session, index),
                       .breakdown_ms = parts,
                       .bubble = {.measured = bubble, .ideal = costs.ideal_bubble},
                       .peak_memory_bytes = memory.peak_bytes,
                       .memory_bytes = memory_by_category(
                           memory, costs.memory.empty() ? nullptr : &costs.memory.at(place))});
  }
  return records;
}

std::vector<reports::TimelineEvent> events_of(const Session& session,
                                              const schedules::Timeline& timeline) {
  std::vector<reports::TimelineEvent> events;
  for (const auto& entry : timeline.entries) {
    // A device may load the next step's targets while another still finishes this one.
    if (entry.end_ms <= 0 && entry.start_ms <= 0) continue;
    events.push_back(event_of(entry, number_in_job(session, entry.device)));
  }
  return events;
}

std::vector<reports::TimelineEvent> median_timeline(const Session& session, const TimedRun& run) {
  const std::size_t step = median_step(run.step_ms());
  const auto origin = step == 0 ? run.start : run.ends[step - 1];
  return events_of(session,
                   schedules::timeline_of({&run.executions[step]}, origin, run.ends[step]));
}

std::optional<double> utilisation(const Session& session, std::optional<double> peak_gflops,
                                  double flops, double step_ms) {
  if (!peak_gflops) return std::nullopt;
  const double peak =
      *peak_gflops * 1e9 *
      static_cast<double>(session.group.devices.size() * static_cast<std::size_t>(session.ranks()));
  return flops / (step_ms / 1e3) / peak;
}

std::map<std::string, reports::CollectiveCount> communication_of_a_step(
    const distributed::CommunicationCounts& counts, std::int64_t steps) {
  std::map<std::string, reports::CollectiveCount> result;
  for (const auto& [collective, count] : per_step(counts, steps)) {
    result[collective] = {
        .calls = count.calls, .payload_bytes = count.payload_bytes, .wire_bytes = count.wire_bytes};
  }
  return result;
}

/// Returns what ATen computed instead of our kernels, and why; on all ranks' devices.
std::map<std::string, std::string> left_to_aten(const Session& session,
                                                const TaskContext& context) {
  nlohmann::json own = nlohmann::json::object();
  for (const auto& device : session.group.devices) {
    device->enqueue(runtime::Stream::compute, "kernels",
                    [&own] { own.update(nlohmann::json(models::functions_left_to_aten())); });
    device->synchronize(to_milliseconds(session.config.timeout));
  }
  std::map<std::string, std::string> all;
  for (const nlohmann::json& rank : all_gather_json(context, own)) {
    all.merge(rank.get<std::map<std::string, std::string>>());
  }
  return all;
}

/// Returns "own; ATen's for batch normalisation, convolution: reduced precision".
std::string kernels_text(const std::map<std::string, std::string>& by_aten) {
  std::map<std::string, std::string> functions;  // by reason
  for (const auto& [function, why] : by_aten) {
    std::string& names = functions[why];
    names += (names.empty() ? "" : ", ") + function;
  }
  std::string text = "own";
  for (const auto& [why, names] : functions) text += "; ATen's for " + names + ": " + why;
  return text;
}

void add_kernels(reports::Repetition& repetition, const Session& session,
                 const TaskContext& context) {
  if (session.config.device != "cpu") return;
  repetition.kernels = session.config.kernels.name();
  if (session.config.kernels != "own") return;
  const auto by_aten = left_to_aten(session, context);
  repetition.kernels = kernels_text(by_aten);
  if (!by_aten.empty()) repetition.marks.emplace_back("aten_kernels");
}

/// Keeps the largest number that ranks hold at a time, and sums the operators that they call.
void merge_counters(std::map<std::string, double>& counters, const nlohmann::json& rank,
                    bool first) {
  auto& live = counters["live_micro_batches"];
  live = std::max(live, rank.at("live_micro_batches").get<double>());
  if (!rank.contains("aten_operators")) return;
  auto& operators = counters["aten_operators"];
  operators = (first ? 0 : operators) + rank.at("aten_operators").get<double>();
}

template <class T>
void append(std::vector<T>& all, const nlohmann::json& more, const std::string& where) {
  for (T& one : reports::json_fields::read_as<std::vector<T>>(more, where)) {
    all.push_back(std::move(one));
  }
}

/// Sums what all ranks have seen of their cores. Returns none if two devices share a core, because
/// each would count as another program for the other.
std::optional<reports::OwnCores> own_cores_of(const reports::Repetition& own,
                                              const TaskContext& context) {
  reports::OwnCores sum;
  std::set<std::pair<std::string, std::int64_t>> seen;
  const std::vector<nlohmann::json> by_rank = all_gather_json(
      context, {{"host", host_name()}, {"own_cores", json_of(own.conditions)["own_cores"]}});
  for (const nlohmann::json& rank : by_rank) {
    const auto part = reports::json_fields::read_as<std::optional<reports::OwnCores>>(
        rank.at("own_cores"), "own_cores");
    if (!part) return std::nullopt;
    for (const std::int64_t core : part->cores) {
      if (!seen.emplace(rank.at("host").get<std::string>(), core).second) return std::nullopt;
    }
    sum.cores.insert(sum.cores.end(), part->cores.begin(), part->cores.end());
    sum.seconds = std::max(sum.seconds, part->seconds);
    sum.others_s += part->others_s;
    sum.stolen_s += part->stolen_s;
    sum.page_faults += part->page_faults;
  }
  return sum;
}

/// Adds what the other ranks have seen of their own devices.
void merge_ranks(reports::Repetition& repetition, const TaskContext& context) {
  const std::vector<nlohmann::json> by_rank =
      all_gather_json(context, {{"devices", json_of(repetition.devices)},
                                {"timeline", json_of(repetition.timeline)},
                                {"counters", repetition.counters},
                                {"cpu_ms", repetition.cpu_ms}});
  repetition.devices.clear();
  repetition.timeline.clear();
  repetition.cpu_ms = 0;
  bool first = true;
  for (const nlohmann::json& rank : by_rank) {
    append(repetition.devices, rank.at("devices"), "devices");
    append(repetition.timeline, rank.at("timeline"), "timeline");
    repetition.cpu_ms += rank.at("cpu_ms").get<double>();
    merge_counters(repetition.counters, rank.at("counters"), first);
    first = false;
  }
}

}  // namespace

std::size_t median_step(const std::vector<double>& durations) {
  std::vector<std::size_t> order(durations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t step) { return durations[step]; });
  return order[(order.size() - 1) / 2];
}

reports::Repetition record_of(const Session& session, const TaskContext& context,
                              const TimedRun& run, std::optional<double> peak_gflops,
                              const std::optional<std::int64_t>& operators) {
  reports::Repetition repetition;
  const auto steps = static_cast<std::int64_t>(run.steps.size());
  repetition.step_ms = run.step_ms();
  repetition.per_rank_ms = run.per_rank_ms;
  repetition.cpu_ms = run.processor_ms / static_cast<double>(steps);
  repetition.devices = device_records(session, run);
  repetition.timeline = median_timeline(session, run);
  repetition.communication = communication_of_a_step(run.communication, steps);
  const strategies::Costs costs = costs_of_a_step(session);
  repetition.flops_per_step = costs.flops;
  const double typical_ms = reports::median(repetition.step_ms);
  repetition.mfu = utilisation(session, peak_gflops, repetition.flops_per_step, typical_ms);
  for (const auto& step : run.steps) repetition.loss.push_back(step->loss());
  repetition.counters["live_micro_batches"] = costs.live_micro_batches;
  if (costs.attention_imbalance > 0) {
    repetition.counters["attention_imbalance"] = costs.attention_imbalance;
  }
  if (repetition.mfu && costs.recomputed_flops > 0) {
    repetition.counters["hfu"] = *repetition.mfu * (1 + costs.recomputed_flops / costs.flops);
  }
  if (operators) repetition.counters["aten_operators"] = static_cast<double>(*operators);
  if (const auto tokens = static_cast<double>(session.workload->sequence_length() *
                                              session.config.global_batch_size);
      tokens > 0) {
    repetition.counters["tokens_per_second"] = 1e3 * tokens / typical_ms;
  }
  repetition.conditions.own_cores = run.own_cores;
  repetition.conditions.own_cores = own_cores_of(repetition, context);
  if (session.ranks() > 1) merge_ranks(repetition, context);
  add_kernels(repetition, session, context);
  const auto skipped =
      std::ranges::count_if(run.steps, [](const auto& step) { return step->skipped(); });
  if (skipped > 0) {
    repetition.counters["skipped_updates"] = static_cast<double>(skipped);
    repetition.marks.emplace_back("skipped_updates");
  }
  if (session.oversubscribed) repetition.marks.emplace_back("oversubscribed");
  return repetition;
}

std::vector<reports::TimelineEvent> trace_of(const Session& session, const TaskContext& context,
                                             const TimedRun& run) {
  std::vector<reports::TimelineEvent> all;
  const nlohmann::json own = json_of(events_of(session, whole_timeline(run)));
  for (const nlohmann::json& rank : all_gather_json(context, own)) {
    append(all, rank, "timeline");
  }
  return all;
}

std::vector<reports::MemoryCurve> memory_curve_of(
    const Session& session, const TaskContext& context, const schedules::Execution& step,
    const std::vector<std::vector<MemoryMark>>& marks) {
  std::map<schedules::Action, std::chrono::steady_clock::time_point> starts;
  auto origin = std::chrono::steady_clock::time_point::max();
  for (const schedules::ExecutedAction& entry : step) {
    starts[entry.action] = entry.start->time();
    origin = std::min(origin, entry.start->time());
  }
  std::vector<reports::MemoryCurve> own;
  for (const std::vector<MemoryMark>& of_device : marks) {
    std::vector<MemoryAt> moments;
    for (std::size_t index = 0; index + 1 < of_device.size(); ++index) {
      moments.push_back({.ms = milliseconds(starts.at(of_device[index].action) - origin),
                         .held = of_device[index].held,
                         .most_bytes = of_device[index + 1].peak});
    }
    const BytesByPurpose& after = of_device.back().held;
    moments.push_back({milliseconds(schedules::end_of(step) - origin), after, sum(after)});
    const int device = number_in_job(session, static_cast<int>(own.size()));
    own.push_back(curve_of(session.rank(), device, moments));
  }
  std::vector<reports::MemoryCurve> all;
  for (const nlohmann::json& rank : all_gather_json(context, json_of(own))) {
    append(all, rank, "memory_curve");
  }
  return all;
}

}  // namespace stratagem::bench
