#include "bench/measure/rounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <system_error>
#include <utility>

#include "bench/config/options.h"
#include "bench/config/row_name.h"
#include "bench/machine/machine.h"
#include "bench/measure/disturbance.h"
#include "bench/measure/job_launch.h"
#include "bench/measure/proving.h"
#include "reports/row_summary.h"
#include "reports/statistics.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

/// Returns 1 under the tutorial's protocol, where one launch holds all repetitions of a row.
std::int64_t rounds_of(const Config& config) {
  return config.protocol == "tutorial" ? 1 : config.repetitions;
}

/// Returns a seed that another run hardly has, for --order-seed: nine digits of the time.
std::int64_t drawn_seed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return 1 + std::chrono::duration_cast<std::chrono::milliseconds>(now).count() % 999'999'999;
}

MeasureJob measure_job(const PreparedRow& row, const MeasureOptions& options, bool memory,
                       bool trace) {
  auto job = job_about<MeasureJob>(row.config, row.placement.ranks);
  job.peak_gflops = row.peak_gflops;
  job.turns = options.turns;
  job.evidence = row.config.verify && options.turns.empty();
  job.memory = memory;
  job.trace = trace;
  if (row.verification) job.first_loss = row.verification->first_loss;
  return job;
}

std::vector<reports::MemoryCurve> predicted_curve(const PreparedRow& row) {
  const int devices_of_rank = row.placement.devices() / row.placement.ranks;
  std::vector<reports::MemoryCurve> curves;
  for (const std::vector<MemoryAt>& moments : row.predicted->memory) {
    const int device = static_cast<int>(curves.size());
    curves.push_back(curve_of(device / devices_of_rank, device, moments));
  }
  return curves;
}

void add_marks(reports::Repetition& repetition, const PreparedRow& row) {
  auto& marks = repetition.marks;
  for (const std::string& mark : row.marks) {
    if (std::find(marks.begin(), marks.end(), mark) == marks.end()) marks.push_back(mark);
  }
}

bool is_disturbed(const reports::Repetition& launch) {
  return std::ranges::count(launch.marks, disturbed_mark) > 0;
}

/// Adds what the worker lacks: marks and how the row was verified.
void complete(reports::Repetition& repetition, const PreparedRow& row) {
  if (!repetition.verification && row.verification) {
    repetition.verification = row.verification->verification;
  }
  add_marks(repetition, row);
}

}  // namespace

Rounds::Rounds(std::vector<PreparedRow>& rows, const MeasureOptions& options,
               const MeasureEnvironment& environment, Observer& observer)
    : rows_(rows),
      options_(options),
      environment_(environment),
      observer_(observer),
      repetitions_(rows.size()),
      evidence_(rows.size()),
      traces_(rows.size()) {
  for (const PreparedRow& row : rows) plan_.rows.push_back(launch_options(row.requested));
  plan_.identity = environment.identity;
  plan_.identity["host"] = host_name();
  const std::int64_t asked = rows.front().config.order_seed;
  const std::int64_t seed = asked > 0 ? asked : drawn_seed();
  for (PreparedRow& row : rows) row.config.order_seed = seed;
}

void Rounds::run(PartialFile* partial) {
  partial_ = partial;
  begin_partial_file();
  run("measuring", remaining_launches());
  mark_disturbed();
  if (interrupted_) return;
  run("further rounds", further_rounds());
  mark_disturbed();
}

void Rounds::run(const std::string& phase, const std::vector<PlannedLaunch>& launches) {
  if (launches.empty()) return;
  observer_.phase(phase, launches.size());
  for (const PlannedLaunch& planned : launches) {
    if (!run(planned)) break;
  }
}

void Rounds::begin_partial_file() {
  if (partial_ == nullptr) return;
  std::vector<FinishedLaunch> finished;
  if (options_.resume) finished = read_partial(partial_->path(), plan_);
  write_partial_file([&](PartialFile& file) { file.begin(plan_, finished); });
  for (const FinishedLaunch& launch : finished) {
    for (const reports::Repetition& repetition : launch.repetitions) {
      last_place_ = std::max(last_place_, repetition.conditions.place);
    }
    if (launch.round >= rounds_of(rows_[launch.row].config)) continue;
    if (!done_.insert({launch.row, launch.round}).second) continue;
    keep(launch);
  }
  if (!done_.empty()) {
    observer_.note(fmt::format("{} finished launches taken over from {}", done_.size(),
                               partial_path(options_.out).string()));
  }
}

std::vector<PlannedLaunch> Rounds::remaining_launches() {
  std::vector<std::int64_t> rounds;
  for (const PreparedRow& row : rows_) rounds.push_back(row.failure ? 0 : rounds_of(row.config));
  std::vector<PlannedLaunch> launches = in_order(rounds, 0);
  planned_ = launches.size();
  finished_ = std::erase_if(launches, [&](const PlannedLaunch& launch) {
    return done_.contains({launch.row, launch.round});
  });
  return launches;
}

std::map<std::string, double> Rounds::usual_canaries_ms() const {
  std::map<std::string, std::vector<double>> canaries;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    for (const reports::Repetition& launch : repetitions_[row]) {
      const auto [before_ms, after_ms] = canaries_ms(launch.conditions);
      std::vector<double>& all = canaries[canary_devices(rows_[row].config)];
      all.insert(all.end(), {before_ms, after_ms});
    }
  }
  std::map<std::string, double> usual;
  for (const auto& [devices, all] : canaries) usual[devices] = reports::median(all);
  return usual;
}

void Rounds::mark_disturbed() {
  const std::map<std::string, double> usual = usual_canaries_ms();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    std::vector<std::string> found;
    for (reports::Repetition& launch : repetitions_[row]) {
      const std::string why =
          disturbance_of(launch.conditions, usual.at(canary_devices(rows_[row].config)));
      if (why.empty() || is_disturbed(launch)) continue;
      launch.marks.emplace_back(disturbed_mark);
      found.push_back(fmt::format("launch {} was disturbed: {}", launch.index + 1, why));
    }
    if (!found.empty()) {
      observer_.note(fmt::format("{}: {}", rows_[row].name, fmt::join(found, "; ")));
    }
  }
}

void Rounds::mark_slow(const std::map<std::string, NoiseSource>& slow) {
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (!slow.contains(canary_devices(rows_[row].config))) continue;
    for (reports::Repetition& launch : repetitions_[row]) launch.marks.emplace_back("slow_machine");
  }
}

/// Returns whole rounds of all rows, so that a machine that becomes slower does so for all of them:
/// the number that the most disturbed row needs. A tutorial's repetitions are one launch.
std::vector<PlannedLaunch> Rounds::further_rounds() {
  if (!rows_.front().config.repeat_disturbed) return {};
  std::int64_t needed = 0;
  for (const auto& launches : repetitions_) {
    needed = std::max<std::int64_t>(needed, std::ranges::count_if(launches, is_disturbed));
  }
  std::vector<std::int64_t> rounds;
  for (const PreparedRow& row : rows_) {
    rounds.push_back(row.failure ? 0 : std::min(needed, rounds_of(row.config)));
  }
  std::vector<PlannedLaunch> further = in_order(rounds, 1);
  for (PlannedLaunch& launch : further) {
    launch.round += static_cast<std::int64_t>(repetitions_[launch.row].size());
  }
  planned_ += further.size();
  return further;
}

std::vector<PlannedLaunch> Rounds::in_order(const std::vector<std::int64_t>& rounds,
                                            std::uint64_t part) const {
  const Config& first = rows_.front().config;
  if (first.order == "block") return block_order(rounds);
  return random_order(rounds, static_cast<std::uint64_t>(first.order_seed) + part);
}

/// Returns false if the user interrupts.
bool Rounds::run(const PlannedLaunch& planned) {
  const PreparedRow& row = rows_[planned.row];
  const std::int64_t rounds = rounds_of(row.config);
  observer_.begin(row.name,
                  rounds > 1 ? fmt::format("round {}/{}", planned.round + 1, rounds) : "");
  if (row.failure) {
    observer_.end(std::nullopt);
    return true;
  }
  const bool trace = options_.trace && traces_[planned.row].empty();
  const std::string started = time_now();
  ++last_place_;
  auto launched =
      launch_job(environment_, measure_job(row, options_, /*memory=*/planned.round == 0, trace));
  interrupted_ = launched.status == LaunchStatus::interrupted;
  if (interrupted_) return false;
  ++finished_;
  if (launched.status == LaunchStatus::ok) {
    take(planned, launched, started);
  } else {
    reports::Repetition failure = failed_repetition(planned.round, launched.error);
    failure.conditions.started = started;
    failure.conditions.place = last_place_;
    fail(planned, std::move(failure));
  }
  return true;
}

void Rounds::take(const PlannedLaunch& planned, const Launched<MeasureResult>& launched,
                  const std::string& started) {
  FinishedLaunch finished{.row = planned.row,
                          .round = planned.round,
                          .repetitions = {},
                          .evidence = launched.result.evidence};
  std::vector<double> step_ms;
  std::int64_t index = planned.round;
  for (reports::Repetition repetition : launched.result.repetitions) {
    complete(repetition, rows_[planned.row]);
    if (options_.turns.empty()) {
      const auto own_cores = std::exchange(repetition.conditions, launched.conditions).own_cores;
      repetition.conditions.own_cores = own_cores;
    } else {  // intentionally beside another run
      repetition.conditions = {};
    }
    repetition.conditions.started = started;
    repetition.conditions.place = last_place_;
    repetition.index = static_cast<int>(index++);
    if (repetition.error) return fail(planned, std::move(repetition));
    step_ms.insert(step_ms.end(), repetition.step_ms.begin(), repetition.step_ms.end());
    finished.repetitions.push_back(std::move(repetition));
  }
  if (!launched.result.trace.empty()) traces_[planned.row] = launched.result.trace;
  keep(finished);
  write_partial_file([&](PartialFile& file) { file.append(finished); });
  observer_.end(step_ms.empty() ? std::nullopt : std::optional(reports::median(step_ms)));
}

void Rounds::keep(const FinishedLaunch& launch) {
  std::ranges::copy(launch.repetitions, std::back_inserter(repetitions_[launch.row]));
  std::ranges::copy(launch.evidence, std::back_inserter(evidence_[launch.row]));
}

/// A full disk does not end the measurement. Lines that it did not take wait for the next launch.
void Rounds::write_partial_file(const std::function<void(PartialFile&)>& write) {
  if (partial_ == nullptr) return;
  try {
    write(*partial_);
  } catch (const std::system_error& error) {
    if (std::exchange(partial_file_failed_, true)) return;
    observer_.note(fmt::format("{}; the next launch tries again", error.what()));
  }
}

/// Returns true if the partial file has every finished launch.
bool Rounds::keeps_all() {
  write_partial_file(&PartialFile::flush);
  return partial_ != nullptr && partial_->is_whole();
}

void Rounds::fail(const PlannedLaunch& planned, reports::Repetition failure) {
  PreparedRow& row = rows_[planned.row];
  observer_.note(row.name + ": " + reports::describe(*failure.error));
  add_marks(failure, row);
  row.failure = std::move(failure);
  observer_.end(std::nullopt);
}

void Rounds::prove() {
  if (interrupted_) return;
  std::vector<LaunchedRow> proven;
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    const std::vector<Evidence>& evidence = evidence_[index];
    if (rows_[index].failure || evidence.size() != repetitions_[index].size()) continue;
    proven.push_back({rows_[index], repetitions_[index], evidence});
  }
  prove_rows(proven, environment_, observer_);
}

Measurement Rounds::result(reports::Context context) {
  std::size_t disturbed = 0;
  for (const auto& launches : repetitions_) {
    disturbed += static_cast<std::size_t>(std::ranges::count_if(launches, is_disturbed));
  }
  if (disturbed > 0) {
    context.disturbances.push_back(
        fmt::format("launches: {} of {} were disturbed or ran on a slow machine; see their marks",
                    disturbed, finished_));
  }
  Measurement measurement;
  measurement.results.context = std::move(context);
  measurement.finished_launches = finished_;
  measurement.planned_launches = planned_;
  measurement.kept = keeps_all();
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    measurement.results.rows.push_back(record(index));
    if (traces_[index].empty()) continue;
    measurement.traces.push_back({rows_[index].name, std::move(traces_[index])});
  }
  return measurement;
}

reports::Row Rounds::record(std::size_t index) {
  const PreparedRow& row = rows_[index];
  reports::Row record;
  record.name = row.name;
  record.strategy = row.config.strategy;
  record.model = row.config.model;
  record.mesh = row.placement.mesh.to_string();
  record.workload = workload_name(row.config, environment_.catalogue);
  record.samples_per_step = row.config.global_batch_size;
  record.config = record_values(row.config, environment_.catalogue);
  record.repetitions = std::move(repetitions_[index]);
  std::sort(record.repetitions.begin(), record.repetitions.end(),
            [](const auto& left, const auto& right) { return left.index < right.index; });
  for (reports::Repetition& repetition : record.repetitions) {
    if (row.predicted) {
      repetition.predicted_ms = row.predicted->step_ms;
      repetition.predicted_peak_memory_bytes = row.predicted->peak_bytes;
      if (!repetition.memory_curve.empty()) {
        repetition.predicted_memory_curve = predicted_curve(row);
      }
    }
    repetition.predicted_from = row.predicted_from;
  }
  if (row.failure) record.repetitions.push_back(*row.failure);
  return record;
}

}  // namespace stratagem::bench
