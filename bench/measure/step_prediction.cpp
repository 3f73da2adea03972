#include "bench/measure/step_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bench/predict/predict.h"
#include "reports/statistics.h"
#include "strategies/registry.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

bool is_made_of_stages(const PreparedRow& row) {
  if (!can_be_simulated(row.config)) return false;
  const strategies::StrategyEntry& strategy = strategies::find_strategy(row.config.strategy);
  return row.placement.replicas() > 1 || strategy.reads("split_size") || strategy.reads("cut");
}

bool is_oversubscribed(const PreparedRow& row) {
  return std::ranges::find(row.marks, "oversubscribed") != row.marks.end();
}

/// The ranks whose link is measured: two in place of more than there are cores for.
Config linked_ranks(const PreparedRow& row) {
  Config config = row.config;
  if (!is_oversubscribed(row)) return config;
  config.devices = 2;
  config.ranks = 2;
  config.mesh = "auto";
  return config;
}

/// How many all-reduces are in flight at once where they follow one another closely; Gloo works on
/// two at a time.
constexpr int most_in_flight = 4;

CollectivesJob link_job(const PreparedRow& row, std::size_t buckets) {
  const Config config = linked_ranks(row);
  auto job = job_about<CollectivesJob>(config, placement_of(config).ranks);
  job.in_flight = std::clamp(static_cast<int>(buckets), 1, most_in_flight);
  job.bytes = {std::int64_t{256} << 10, std::int64_t{1} << 20, std::int64_t{8} << 20,
               std::int64_t{32} << 20};
  return job;
}

/// What the link depends on.
json link_question(const CollectivesJob& job) {
  const Config& config = job.config;
  return {{"device", config.device},         {"devices", config.devices},
          {"device_ids", config.device_ids}, {"cores_per_device", config.cores_per_device},
          {"backend", config.backend},       {"interface", config.interface},
          {"in_flight", job.in_flight}};
}

/// What an all-reduce between the row's ranks takes, by size.
Calibrated<std::vector<LinkTime>> price_link(const PreparedRow& row, std::size_t buckets,
                                             const MeasureEnvironment& environment,
                                             Calibrator& calibrator) {
  const CollectivesJob job = link_job(row, buckets);
  // Under a launcher the same names may mean another network next time.
  const auto [launched, basis] = calibrator.calibrate(
      link_question(job), job, [](const CollectivesResult&) { return ""; },
      /*keep=*/environment.ranks_share_cores);
  auto link = with_result(launched, std::vector<LinkTime>());
  for (const MessageTimes& message : launched.result.messages) {
    link.result.push_back({.bytes = message.bytes,
                           .ms = reports::median(message.ms),
                           .processor_share = message.processor_share});
  }
  if (launched.status == LaunchStatus::ok && is_oversubscribed(row)) {
    link.result = link_of_ring(link.result, row.placement.ranks);
  }
  return {std::move(link), basis};
}

/// A stage that takes longer with the machine to itself was disturbed. Single actions may be too
/// short to tell.
std::string contradiction(const CalibrateStagesResult& result) {
  constexpr double noise = 0.05;
  std::map<int, std::pair<double, double>> stages;  // beside the others, and alone
  for (const ActionCost& cost : result.costs) {
    stages[cost.stage].first += cost.ms;
    stages[cost.stage].second += cost.alone_ms < 0 ? cost.ms : cost.alone_ms;
  }
  for (const auto& [stage, ms] : stages) {
    if (ms.second <= (1 + noise) * ms.first) continue;
    return fmt::format("stage {} took {:.4g} ms alone and {:.4g} ms beside the others", stage,
                       ms.second, ms.first);
  }
  return "";
}

/// A prediction is an addition to the measurement: one that cannot be made is left out, saying so.
void predict_row(PreparedRow& row, const MeasureEnvironment& environment, Observer& observer) {
  try {
    row.predicted_ms = environment.predict(row.config, *row.stage_costs);
  } catch (const std::exception& error) {
    observer.note(row.name + ": no prediction: " + error.what());
  }
}

}  // namespace

bool can_be_simulated(const Config& config) {
  const Placement placement = placement_of(config);
  if (placement.tensor_ranks() > 1 || sharded_state(config) != "none" ||
      config.mixed_precision != "none") {
    return false;
  }
  if (strategies::find_strategy(config.strategy).one_process) return is_data_parallel(config);
  if (placement.replicas() == 1) return true;
  return placement.pipeline_devices() == 1 &&
         !strategies::find_strategy(config.strategy).reads("split_size");
}

Calibrated<StageCosts> price_stages(const PreparedRow& row, const MeasureEnvironment& environment,
                                    Calibrator& calibrator) {
  auto [launched, basis] = calibrator.calibrate(
      work_of(row.config), job_about<CalibrateStagesJob>(row.config), contradiction);
  auto priced = with_result(launched, StageCosts{.costs = launched.result.costs,
                                                 .buckets = launched.result.buckets,
                                                 .owners = launched.result.owners});
  if (priced.status != LaunchStatus::ok) return {priced, basis};
  StageCosts& costs = priced.result;
  if (is_oversubscribed(row)) costs.costs = costs_alone(std::move(costs.costs));
  if (row.placement.replicas() == 1 || is_data_parallel(row.config)) return {priced, basis};
  auto [link, link_basis] = price_link(row, costs.buckets.size(), environment, calibrator);
  costs.link = std::move(link.result);
  priced.status = link.status;
  priced.error = std::move(link.error);
  basis.age_s = std::max(basis.age_s, link_basis.age_s);
  if (basis.doubt.empty()) basis.doubt = link_basis.doubt;
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
