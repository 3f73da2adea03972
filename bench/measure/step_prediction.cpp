#include "bench/measure/step_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bench/predict/link_fit.h"
#include "bench/predict/predict.h"
#include "reports/statistics.h"
#include "reports/text_table.h"
#include "strategies/registry.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

bool is_made_of_stages(const PreparedRow& row) {
  if (!can_be_simulated(row.config)) return false;
  if (row.placement.replicas() > 1 || row.placement.pipeline_devices() > 1) return true;
  const strategies::StrategyEntry& strategy = strategies::find_strategy(row.config.strategy);
  return strategy.multi_device && strategy.usually_spreads_over("pipeline");
}

bool is_oversubscribed(const PreparedRow& row) {
  return std::ranges::find(row.marks, "oversubscribed") != row.marks.end();
}

/// Returns a row with only the ranks that have a collective with one another; with two if the row
/// is oversubscribed. Under a launcher all of its ranks take part.
Config linked(const PreparedRow& row, int ranks, bool ranks_are_here) {
  Config config = row.config;
  config.replicas_of_shards = 1;
  const bool whole = row.placement.ranks == ranks;
  if (!ranks_are_here || (whole && !is_oversubscribed(row))) return config;
  config.devices = is_oversubscribed(row) ? 2 : ranks;
  config.ranks = config.devices;
  config.mesh = fmt::format("data={}", config.devices);
  return config;
}

/// A collective of `ranks` ranks, and where its times go in a row's links.
struct LinkUse {
  std::string collective;
  int ranks = 2;
  std::vector<LinkTime> Links::*times;
};

/// Returns what the link depends on.
json link_question(const CollectivesJob& job) {
  const Config& config = job.config;
  return {{"device", config.device.name()},   {"devices", config.devices},
          {"device_ids", config.device_ids},  {"cores_per_device", config.cores_per_device},
          {"backend", config.backend.name()}, {"interface", config.interface},
          {"collective", job.collective},     {"ranks", job.header.ranks}};
}

/// Returns the times of a collective between the row's replicas, by size.
Calibrated<std::vector<LinkTime>> price_link(const PreparedRow& row, const LinkUse& use,
                                             const MeasureEnvironment& environment,
                                             Calibrator& calibrator) {
  const Config config = linked(row, use.ranks, environment.ranks_share_cores);
  auto job = job_about<CollectivesJob>(config, placement_of(config).ranks);
  job.collective = use.collective;
  job.bytes = {std::int64_t{256} << 10, std::int64_t{1} << 20};
  if (!environment.untimed) {
    job.bytes.insert(job.bytes.end(), {std::int64_t{8} << 20, std::int64_t{32} << 20});
  }
  // Under a launcher the same names may mean another network next time.
  const auto [launched, basis] = calibrator.calibrate(
      link_question(job), job, [](const CollectivesResult&) { return ""; },
      /*keep=*/environment.ranks_share_cores);
  auto link = with_result(launched, std::vector<LinkTime>());
  for (const MessageTimes& message : launched.result.messages) {
    link.result.push_back({.bytes = message.bytes,
                           .ms = mean_cost(message.ms),
                           .processor_share = message.processor_share,
                           .spread = spread_of(message.ms)});
  }
  const bool reduced = environment.ranks_share_cores && is_oversubscribed(row);
  if (launched.status == LaunchStatus::ok && reduced) {
    link.result = link_of_ring(link.result, use.ranks);
  }
  reports::PredictionBasis with_doubt = basis;
  if (job.header.ranks > use.ranks && !reduced && with_doubt.doubt.empty()) {
    with_doubt.doubt = fmt::format("{} was timed among all {} ranks, and not among {}",
                                   use.collective, job.header.ranks, use.ranks);
  }
  return {std::move(link), with_doubt};
}

std::vector<LinkUse> link_uses(const PreparedRow& row) {
  const Config& config = row.config;
  const int copies = copies_of(config);
  const int shards = row.placement.replicas() / copies;
  std::vector<LinkUse> uses;
  if (sharded_state(config) != "none") {
    uses.push_back({"all_gather", shards, &Links::gather});
    uses.push_back({scatters_by_exchange(config) ? "all_to_all" : "reduce_scatter_library", shards,
                    &Links::scatter});
  }
  if (copies > 1) uses.push_back({"all_reduce", copies, &Links::all_reduce});
  return uses;
}

/// Returns why the result cannot be true. A stage that takes much longer without the others was
/// disturbed. A little longer is possible: the stage takes turns with the others, and its core and
/// caches cool down meanwhile. Single actions may be too short to decide.
std::string contradiction(const CalibrateStagesResult& result) {
  constexpr double cooled = 0.25;
  std::map<int, std::pair<double, double>> stages;  // beside the others, and without them
  for (const ActionCost& cost : result.costs) {
    stages[cost.stage].first += cost.ms;
    stages[cost.stage].second += cost.alone_ms < 0 ? cost.ms : cost.alone_ms;
  }
  for (const auto& [stage, ms] : stages) {
    if (ms.second <= (1 + cooled) * ms.first) continue;
    return fmt::format("stage {} took {} ms alone and {} ms beside the others", stage,
                       reports::significant(ms.second, 4), reports::significant(ms.first, 4));
  }
  return "";
}

/// A prediction that cannot be made is reported and left out: the measurement does not need it.
void predict_row(PreparedRow& row, const MeasureEnvironment& environment, Observer& observer) {
  try {
    row.predicted = environment.predict(row.config, *row.stage_costs);
    row.predicted_from->low_ms = row.predicted->low_ms;
    row.predicted_from->high_ms = row.predicted->high_ms;
  } catch (const std::exception& error) {
    observer.note(row.name + ": no prediction: " + error.what());
  }
}

}  // namespace

bool can_be_simulated(const Config& config) {
  const Placement placement = placement_of(config);
  if (placement.tensor_ranks() * placement.context_ranks() > 1) return false;
  if (strategies::find_strategy(config.strategy).one_process) return is_data_parallel(config);
  return true;
}

Calibrated<StageCosts> price_stages(const PreparedRow& row, const MeasureEnvironment& environment,
                                    Calibrator& calibrator) {
  auto [launched, basis] = calibrator.calibrate(
      work_of(row.config), job_about<CalibrateStagesJob>(row.config), contradiction);
  const CalibrateStagesResult& found = launched.result;
  auto priced = with_result(launched, StageCosts{.costs = found.costs,
                                                 .owners = found.owners,
                                                 .groups = found.groups,
                                                 .has_buffers = found.has_buffers,
                                                 .kept_groups = found.kept_groups,
                                                 .memory = found.memory});
  if (priced.status != LaunchStatus::ok) return {priced, basis};
  StageCosts& costs = priced.result;
  if (is_oversubscribed(row)) costs.costs = costs_alone(std::move(costs.costs));
  if (row.placement.replicas() == 1 || is_data_parallel(row.config)) return {priced, basis};
  for (const LinkUse& use : link_uses(row)) {
    auto [link, link_basis] = price_link(row, use, environment, calibrator);
    if (link.status != LaunchStatus::ok) {
      priced.status = link.status;
      priced.error = std::move(link.error);
      return {priced, basis};
    }
    costs.links.*use.times = std::move(link.result);
    basis.age_s = std::max(basis.age_s, link_basis.age_s);
    if (basis.doubt.empty()) basis.doubt = link_basis.doubt;
  }
  return {priced, basis};
}

void predict_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                  Calibrator& calibrator, Observer& observer) {
  std::vector<PreparedRow*> staged;
  for (PreparedRow& row : rows) {
    if (!row.failure && row.config.predict && is_made_of_stages(row)) staged.push_back(&row);
  }
  observer.phase("calibrating stages", staged.size());
  for (PreparedRow* row : staged) {
    observer.begin(row->name, "");
    auto [priced, basis] = price_stages(*row, environment, calibrator);
    observer.end(std::nullopt);
    if (priced.status == LaunchStatus::interrupted) throw Interrupted();
    if (priced.status != LaunchStatus::ok) {
      observer.note(row->name + ": no prediction: " + priced.error.message);
      continue;
    }
    row->stage_costs = std::move(priced.result);
    row->predicted_from = std::move(basis);
    predict_row(*row, environment, observer);
  }
}

}  // namespace stratagem::bench
