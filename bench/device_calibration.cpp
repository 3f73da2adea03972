// How fast the devices are at best: the peak that a row's model FLOP utilisation refers to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "bench/options.h"
#include "bench/placement.h"
#include "bench/preparation.h"
#include "strategies/registry.h"

namespace stratagem::bench {

namespace {

using nlohmann::json;

constexpr std::array measured_rates = {"gemm_gflops", "convolution_gflops", "memory_gb_per_s",
                                       "link_gb_per_s", "link_latency_ms"};

bool on_cpu(const Config& config) { return config.device == "cpu"; }

/// What a calibration depends on, as the configuration to calibrate with. CPU devices are
/// calibrated with one core each: a row's peak counts its cores.
Config calibration_config(const Config& row, std::size_t cores) {
  Config config;
  config.device = row.device;
  config.devices = placement_of(row).devices();
  if (on_cpu(row)) config.devices = std::min(config.devices, static_cast<std::int64_t>(cores));
  config.device_ids = row.device_ids;
  config.timeout = row.timeout;
  config.dtype = row.dtype;
  config.tf32 = row.tf32;
  config.memory_format = row.memory_format;
  return config;
}

/// "cpu_float32", "cuda_float32_tf32".
std::string calibration_name(const Config& config) {
  return config.device + "_" + config.dtype + (config.tf32 ? "_tf32" : "");
}

double cores_of_device(const Config& row) {
  return on_cpu(row) ? static_cast<double>(row.cores_per_device) : 1;
}

double peak_of(const json& rates) {
  return std::max(rates.value("gemm_gflops", 0.0), rates.value("convolution_gflops", 0.0));
}

}  // namespace

reports::Values calibrate_devices(std::vector<PreparedRow>& rows,
                                  const MeasureEnvironment& environment, Observer& observer) {
  // Devices that are measured together share power and memory: the most of them give the peak that
  // every row of the table is held against.
  std::map<std::string, Config> wanted;
  for (const PreparedRow& row : rows) {
    const Config config = calibration_config(row.config, environment.cores.size());
    const auto [found, added] = wanted.try_emplace(calibration_name(config), config);
    if (!added && found->second.devices < config.devices) found->second = config;
  }
  observer.phase("calibrating", wanted.size());
  reports::Values facts;
  for (const auto& [name, config] : wanted) {
    observer.begin(name, "");
    const LaunchResult launched = cached_launch(
        "device", work_of(config), {{"task", "calibrate_device"}, {"config", to_json(config)}},
        config, environment, [](const json& rates) { return peak_of(rates) > 0; });
    if (launched.status == LaunchStatus::interrupted) throw Interrupted();
    if (launched.status != LaunchStatus::ok) {
      observer.note(fmt::format("no peak rates of {}: {}", name, launched.error.message));
      observer.end(std::nullopt);
      continue;
    }
    for (const char* rate : measured_rates) {
      const json value = launched.result.value(rate, json());
      if (!value.is_number()) continue;
      facts.emplace_back(wanted.size() == 1 ? rate : name + "_" + rate, value.get<double>());
    }
    for (PreparedRow& row : rows) {
      if (calibration_name(row.config) != name || peak_of(launched.result) <= 0) continue;
      row.peak_gflops = peak_of(launched.result) * cores_of_device(row.config);
    }
    observer.end(std::nullopt);
  }
  return facts;
}

}  // namespace stratagem::bench
