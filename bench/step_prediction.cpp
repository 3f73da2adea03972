// What the simulator makes of a row's stages, to stand beside what was measured.
#include <algorithm>
#include <map>

#include "bench/options.h"
#include "bench/placement.h"
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
  const Placement placement = placement_of(config);
  if (placement.tensor_ranks() > 1) return false;
  if (placement.replicas() > 1) {
    return placement.pipeline_devices() == 1 && !reads(config, "split_size");
  }
  return reads(config, "split_size") || reads(config, "cut");
}

/// What an all-reduce between the row's ranks takes, by size: [{bytes, ms, processor_share}]; null
/// when it cannot be found out.
json link_between_ranks(const PreparedRow& row, const MeasureEnvironment& environment,
                        Observer& observer) {
  const std::vector<std::int64_t> sizes = {std::int64_t{256} << 10, std::int64_t{1} << 20,
                                           std::int64_t{8} << 20, std::int64_t{32} << 20};
  const Config& config = row.config;
  const json question{
      {"device", config.device},         {"devices", config.devices},
      {"device_ids", config.device_ids}, {"cores_per_device", config.cores_per_device},
      {"backend", config.backend},       {"interface", config.interface}};
  const json job{{"task", "collectives"},
                 {"ranks", placement_of(config).ranks},
                 {"config", to_json(config)},
                 {"collective", "all_reduce"},
                 {"bytes", sizes}};
  // Under a launcher the same names may mean another network next time.
  const LaunchResult launched =
      environment.ranks_share_cores
          ? cached_launch("link", question, job, config, environment,
                          [](const json& answer) { return answer.contains("ms"); })
          : environment.launch(job, launch_limit(config));
  if (launched.status == LaunchStatus::interrupted) throw Interrupted();
  if (launched.status != LaunchStatus::ok || !launched.result.contains("ms")) {
    observer.note(row.name + ": no prediction: " + launched.error.message);
    return {};
  }
  json link = json::array();
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    const auto times = launched.result["ms"][index].get<std::vector<double>>();
    link.push_back({{"bytes", sizes[index]},
                    {"ms", reports::median(times)},
                    {"processor_share", launched.result["processor_share"][index]}});
  }
  return link;
}

void calibrate(PreparedRow& row, const MeasureEnvironment& environment, Observer& observer) {
  const LaunchResult launched =
      cached_launch("stages", work_of(row.config),
                    {{"task", "calibrate_stages"}, {"config", to_json(row.config)}}, row.config,
                    environment, [](const json& answer) { return answer.contains("costs"); });
  if (launched.status == LaunchStatus::interrupted) throw Interrupted();
  if (launched.status != LaunchStatus::ok || !launched.result.contains("costs")) {
    observer.note(row.name + ": no prediction: " + launched.error.message);
    return;
  }
  if (placement_of(row.config).replicas() == 1) {
    row.stage_costs = launched.result["costs"];
  } else {
    row.stage_costs = launched.result;
    row.stage_costs["link"] = link_between_ranks(row, environment, observer);
    if (row.stage_costs["link"].is_null()) row.stage_costs = json();
  }
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
    calibrate(*row, environment, observer);
    observer.end(std::nullopt);
    if (row->stage_costs.is_null()) continue;
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
