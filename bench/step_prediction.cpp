// What the simulator makes of a row's stages, to stand beside what was measured.
#include <algorithm>
#include <map>

#include "bench/options.h"
#include "bench/placement.h"
#include "bench/predict.h"
#include "bench/preparation.h"
#include "reports/statistics.h"
#include "strategies/registry.h"

namespace stratagem::bench {

namespace {

using nlohmann::json;

bool reads(const Config& config, const char* option) {
  const auto& options = strategies::find_strategy(config.strategy).options;
  return std::find(options.begin(), options.end(), option) != options.end();
}

bool is_made_of_stages(const Config& config) {
  if (!can_be_simulated(config)) return false;
  return placement_of(config).replicas() > 1 || reads(config, "split_size") || reads(config, "cut");
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

/// How many all-reduces are under way at once where they follow one another closely; Gloo works on
/// two at a time.
constexpr int most_in_flight = 4;

/// Fills what an all-reduce between the row's ranks takes, by size: [{bytes, ms, processor_share}].
LaunchResult price_link(PreparedRow& row, const MeasureEnvironment& environment) {
  const std::vector<std::int64_t> sizes = {std::int64_t{256} << 10, std::int64_t{1} << 20,
                                           std::int64_t{8} << 20, std::int64_t{32} << 20};
  const Config config = linked_ranks(row);
  const int buckets = static_cast<int>(row.stage_costs.at("buckets").size());
  const int in_flight = std::clamp(buckets, 1, most_in_flight);
  const json question{
      {"device", config.device},         {"devices", config.devices},
      {"device_ids", config.device_ids}, {"cores_per_device", config.cores_per_device},
      {"backend", config.backend},       {"interface", config.interface},
      {"in_flight", in_flight}};
  const json job{{"task", "collectives"},     {"ranks", placement_of(config).ranks},
                 {"config", to_json(config)}, {"collective", "all_reduce"},
                 {"in_flight", in_flight},    {"bytes", sizes}};
  // Under a launcher the same names may mean another network next time.
  LaunchResult launched =
      environment.ranks_share_cores
          ? cached_launch("link", question, job, config, environment,
                          [](const json& answer) { return answer.contains("ms"); })
          : environment.launch(job, launch_limit(config));
  if (launched.status != LaunchStatus::ok) return launched;
  json link = json::array();
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    const auto times = launched.result.at("ms").at(index).get<std::vector<double>>();
    link.push_back({{"bytes", sizes[index]},
                    {"ms", reports::median(times)},
                    {"processor_share", launched.result.at("processor_share").at(index)}});
  }
  if (is_oversubscribed(row)) link = link_of_ring(link, placement_of(row.config).ranks);
  row.stage_costs["link"] = link;
  return launched;
}

/// A prediction is an addition to the measurement: one that cannot be made is left out, saying so.
template <class Predict>
std::optional<double> attempt(const PreparedRow& row, Observer& observer, Predict predict) {
  try {
    return predict();
  } catch (const std::exception& error) {
    observer.note(row.name + ": no prediction: " + error.what());
    return std::nullopt;
  }
}

/// Rows that differ in their split size alone, by what they have in common.
std::map<std::string, std::vector<PreparedRow*>> families(std::vector<PreparedRow>& rows) {
  std::map<std::string, std::vector<PreparedRow*>> result;
  for (PreparedRow& row : rows) {
    if (row.stage_costs.is_null() || !reads(row.config, "split_size")) continue;
    json common = work_of(row.config);
    common.erase("split_size");
    result[common.dump()].push_back(&row);
  }
  return result;
}

}  // namespace

bool can_be_simulated(const Config& config) {
  const Placement placement = placement_of(config);
  if (placement.tensor_ranks() > 1) return false;
  if (placement.replicas() == 1) return true;
  return placement.pipeline_devices() == 1 && !reads(config, "split_size");
}

LaunchResult price_stages(PreparedRow& row, const MeasureEnvironment& environment) {
  LaunchResult launched =
      cached_launch("stages", work_of(row.config),
                    {{"task", "calibrate_stages"}, {"config", to_json(row.config)}}, row.config,
                    environment, [](const json& answer) { return answer.contains("costs"); });
  if (launched.status != LaunchStatus::ok) return launched;
  json costs = launched.result.at("costs");
  if (is_oversubscribed(row)) costs = costs_alone(costs);
  if (placement_of(row.config).replicas() == 1) {
    row.stage_costs = costs;
    return launched;
  }
  row.stage_costs = launched.result;
  row.stage_costs["costs"] = costs;
  launched = price_link(row, environment);
  if (launched.status != LaunchStatus::ok) row.stage_costs = json();
  return launched;
}

std::optional<std::pair<std::size_t, std::size_t>> two_calibration_splits(
    const std::vector<std::int64_t>& split_sizes) {
  if (split_sizes.size() < 3) return std::nullopt;
  std::vector<std::size_t> by_size(split_sizes.size());
  for (std::size_t index = 0; index < by_size.size(); ++index) by_size[index] = index;
  std::sort(by_size.begin(), by_size.end(), [&](std::size_t left, std::size_t right) {
    return split_sizes[left] < split_sizes[right];
  });
  if (by_size.size() == 3) return std::pair{by_size.front(), by_size.back()};
  return std::pair{by_size[1], by_size[by_size.size() - 2]};
}

void predict_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                  Observer& observer) {
  std::vector<PreparedRow*> staged;
  for (PreparedRow& row : rows) {
    if (!row.failure && is_made_of_stages(row.config)) staged.push_back(&row);
  }
  observer.phase("calibrating stages", staged.size());
  for (PreparedRow* row : staged) {
    observer.begin(row->name, "");
    const LaunchResult launched = price_stages(*row, environment);
    observer.end(std::nullopt);
    if (launched.status == LaunchStatus::interrupted) throw Interrupted();
    if (launched.status != LaunchStatus::ok) {
      observer.note(row->name + ": no prediction: " + launched.error.message);
      continue;
    }
    row->predicted_ms =
        attempt(*row, observer, [&] { return environment.predict(row->config, row->stage_costs); });
  }
  for (const auto& entry : families(rows)) {
    const std::vector<PreparedRow*>& family = entry.second;
    std::vector<std::int64_t> sizes;
    for (const PreparedRow* row : family) sizes.push_back(row->config.split_size);
    const auto pair = two_calibration_splits(sizes);
    if (!pair) continue;
    for (PreparedRow* row : family) {
      row->predicted_from_two_splits_ms = attempt(*row, observer, [&] {
        return environment.predict_from_two(row->config, family[pair->first]->stage_costs,
                                            family[pair->second]->stage_costs);
      });
    }
  }
}

}  // namespace stratagem::bench
