#include "bench/measure/proving.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/config/row_name.h"
#include "bench/machine/machine.h"
#include "bench/measure/job_launch.h"
#include "bench/proof/judge.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

/// Returns what decides a reference except its length. `config` is that of any of its rows.
json question_of(const Config& config, const std::vector<std::int64_t>& skipped,
                 const Catalogue& catalogue) {
  json partition;
  const models::ModelEntry* model = catalogue.model(config.model);
  if (model == nullptr || model->has_batch_norm) {
    for (const schedules::Slice& slice : slices_of(config)) {
      partition.push_back({slice.start, slice.count, slice.replica});
    }
  }
  return {{"workload", workload_name(config, catalogue)},
          {"partition", partition},
          {"steps", config.protocol == "tutorial" ? config.steps : 0},
          {"plugins", config.plugin},
          {"skipped", skipped}};
}

/// The launches for which one reference is computed.
struct Group {
  ReferenceJob job;
  std::vector<std::pair<std::size_t, std::size_t>> launches;  // row, launch
};

void add_length(std::vector<std::int64_t>& lengths, std::int64_t length) {
  const auto place = std::ranges::lower_bound(lengths, length);
  if (place == lengths.end() || *place != length) lengths.insert(place, length);
}

std::vector<Group> groups_of(const std::vector<LaunchedRow>& rows, const Catalogue& catalogue) {
  std::map<std::string, Group> groups;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const auto& [row, launches, evidence] = rows[index];
    for (std::size_t launch = 0; launch < evidence.size(); ++launch) {
      const std::vector<std::int64_t>& skipped = evidence[launch].skipped;
      Group& group = groups[question_of(row.config, skipped, catalogue).dump()];
      if (group.launches.empty()) {
        group.job = job_about<ReferenceJob>(row.config);
        group.job.skipped = skipped;
      }
      add_length(group.job.lengths, std::ssize(evidence[launch].loss));
      group.launches.emplace_back(index, launch);
    }
  }
  std::vector<Group> all;
  for (auto& [question, group] : groups) all.push_back(std::move(group));
  return all;
}

/// Adds the lengths between the shortest and the longest launch: another run's warm-up may end
/// there.
void fill_between(std::vector<std::int64_t>& lengths) {
  constexpr std::int64_t most = 16;
  const std::int64_t count = lengths.back() - lengths.front() + 1;
  if (count > most) return;
  const std::int64_t first = lengths.front();
  lengths.resize(static_cast<std::size_t>(count));
  std::iota(lengths.begin(), lengths.end(), first);
}

/// Returns whether a kept reference has what the job asks for. If not, adds the reference's own to
/// the job, so that the answer that replaces it has both.
bool has_what_is_asked(const ReferenceResult& kept, ReferenceJob& job) {
  const Trajectory& exact = kept.reference.exact;
  const bool has_all = std::ranges::all_of(
      job.lengths, [&](std::int64_t length) { return exact.after(length) != nullptr; });
  if (has_all && job.shakings <= kept.reference.shakings) return true;
  job.shakings = std::max(job.shakings, kept.reference.shakings);
  for (const StateAt& each : exact.states) {
    if (each.steps > 0) add_length(job.lengths, each.steps);
  }
  return false;
}

/// Returns false for a GPU, which may add up in another order each time, and for devices of several
/// cores, among whose threads libraries may divide a sum by which cores are free.
bool adds_up_in_one_order(const Config& config) {
  return config.device == "cpu" && config.cores_per_device == 1;
}

reports::Proof proof_of(const LaunchedRow& row, std::size_t launch, const Reference& reference) {
  const Evidence& own = row.evidence[launch];
  reports::Proof proof = judge(own, reference);
  std::string wrong = wrong_skip(row.row.config, own);
  if (wrong.empty() && adds_up_in_one_order(row.row.config)) {
    wrong = difference_of_launches(row.evidence.front(), own);
  }
  if (proof.passed && !wrong.empty()) {
    proof.passed = false;
    proof.message = wrong;
  }
  return proof;
}

/// Returns the reference of a group, with all that may show that its launches are right.
Launched<ReferenceResult> reference_of(const Group& group, const std::vector<LaunchedRow>& rows,
                                       const MeasureEnvironment& environment) {
  return reference_for(group.job, environment, [&](const Reference& reference) {
    return std::ranges::all_of(group.launches, [&](const auto& each) {
      return judge(rows[each.first].evidence[each.second], reference).passed;
    });
  });
}

void fail_if_wrong(const LaunchedRow& of, Observer& observer) {
  const auto wrong = std::ranges::find_if(
      of.launches, [](const auto& launch) { return launch.proof && !launch.proof->passed; });
  if (wrong == of.launches.end()) return;
  reports::Repetition failure = failed_repetition(
      std::ssize(of.launches), {.rank = 0,
                                .host = host_name(),
                                .last_action = "",
                                .message = fmt::format("the timed steps are wrong: launch {}: {}",
                                                       wrong->index + 1, wrong->proof->message)});
  failure.proof = wrong->proof;
  failure.verification = wrong->verification;
  failure.marks = of.row.marks;
  observer.note(of.row.name + ": " + failure.error->message);
  of.row.failure = std::move(failure);
}

}  // namespace

void prove_rows(const std::vector<LaunchedRow>& rows, const MeasureEnvironment& environment,
                Observer& observer) {
  const std::vector<Group> groups = groups_of(rows, environment.catalogue);
  if (groups.empty()) return;
  observer.phase("proving", groups.size());
  for (const Group& group : groups) {
    const std::string& name = rows[group.launches.front().first].row.name;
    observer.begin(name, "");
    const auto launched = reference_of(group, rows, environment);
    if (launched.status == LaunchStatus::interrupted) throw Interrupted();
    if (launched.status == LaunchStatus::ok) {
      for (const auto& [row, launch] : group.launches) {
        rows[row].launches[launch].proof = proof_of(rows[row], launch, launched.result.reference);
      }
    } else {
      observer.note(
          fmt::format("{}: no proof of the timed steps: {}", name, launched.error.message));
    }
    observer.end(std::nullopt);
  }
  for (const LaunchedRow& row : rows) fail_if_wrong(row, observer);
}

std::string wrong_skip(const Config& config, const Evidence& launch) {
  const bool scales = config.mixed_precision == "float16" && config.loss_scale == "dynamic";
  if (launch.skipped.empty() || scales) return "";
  return fmt::format("step {} skipped its update without a dynamic loss scale",
                     launch.skipped.front());
}

Launched<ReferenceResult> reference_for(ReferenceJob job, const MeasureEnvironment& environment,
                                        const std::function<bool(const Reference&)>& shows_enough) {
  fill_between(job.lengths);
  // Gives each step of all trajectories the time limit of an action.
  constexpr double least_s = 600;
  job.header.timeout = std::max(
      least_s, job.config.timeout * (2 + most_shakings) * static_cast<double>(job.lengths.back()));
  const auto launch = [&] {
    return cached_launch(
        environment, question_of(job.config, job.skipped, environment.catalogue), job,
        [](const ReferenceResult&) { return true; }, has_what_is_asked);
  };
  auto launched = launch();
  const Reference& found = launched.result.reference;
  const bool can_show_more = launched.status == LaunchStatus::ok && found.magnifies;
  if (!can_show_more || found.shakings >= most_shakings || shows_enough(found)) return launched;
  job.shakings = most_shakings;
  return launch();
}

}  // namespace stratagem::bench
