#include "bench/measure/proving.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/config/row_name.h"
#include "bench/measure/job_launch.h"
#include "bench/proof/judge.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

/// What decides the reference, whichever way the row takes to it.
json question_of(const ReferenceJob& job, const Catalogue& catalogue) {
  json partition;
  const models::ModelEntry* model = catalogue.model(job.config.model);
  if (model == nullptr || model->has_batch_norm) {
    for (const schedules::Slice& slice : slices_of(job.config)) {
      partition.push_back({slice.start, slice.count, slice.replica});
    }
  }
  return {{"workload", workload_name(job.config, catalogue)},
          {"partition", partition},
          {"steps", job.config.protocol == "tutorial" ? job.config.steps : 0},
          {"plugins", job.config.plugin},
          {"lengths", job.lengths},
          {"skipped", job.skipped}};
}

ReferenceJob reference_job(const PreparedRow& row, const std::vector<Evidence>& launches) {
  auto job = job_about<ReferenceJob>(row.config);
  std::set<std::int64_t> lengths;
  std::set<std::int64_t> skipped;
  for (const Evidence& launch : launches) {
    lengths.insert(std::ssize(launch.loss));
    skipped.insert(launch.skipped.begin(), launch.skipped.end());
  }
  job.lengths.assign(lengths.begin(), lengths.end());
  job.skipped.assign(skipped.begin(), skipped.end());
  // Each step of both trajectories has the time that an action has.
  job.header.timeout = row.config.timeout * 2 * static_cast<double>(job.lengths.back());
  return job;
}

/// A GPU may add up in another order each time, and libraries may divide a sum among the threads of
/// a device as its cores are free.
bool adds_up_in_one_order(const Config& row) {
  return row.device == "cpu" && row.cores_per_device == 1;
}

/// Adds what the launches show against each other.
void compare_launches(const std::vector<Evidence>& launches,
                      std::vector<reports::Verdict>& verdicts) {
  for (std::size_t index = 1; index < launches.size(); ++index) {
    const std::string difference = difference_of_launches(launches.front(), launches[index]);
    if (difference.empty() || !verdicts[index].passed) continue;
    verdicts[index].passed = false;
    verdicts[index].message = difference;
  }
}

}  // namespace

Proofs prove(const PreparedRow& row, const std::vector<Evidence>& launches,
             const MeasureEnvironment& environment) {
  const ReferenceJob job = reference_job(row, launches);
  const auto launched = cached_launch(environment, question_of(job, environment.catalogue), job,
                                      [](const ReferenceResult&) { return true; });
  if (launched.status == LaunchStatus::interrupted) throw Interrupted();
  Proofs proofs;
  if (launched.status != LaunchStatus::ok) {
    proofs.error = launched.error;
    return proofs;
  }
  for (const Evidence& launch : launches) {
    proofs.verdicts.push_back(judge(launch, launched.result.reference));
  }
  if (adds_up_in_one_order(row.config)) compare_launches(launches, proofs.verdicts);
  return proofs;
}

}  // namespace stratagem::bench
