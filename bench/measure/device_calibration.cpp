#include "bench/measure/device_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace stratagem::bench {
namespace {

bool on_cpu(const Config& config) { return config.device == "cpu"; }

/// Returns what a calibration depends on, as the configuration to calibrate with. CPU devices are
/// calibrated with one core each: a row's peak counts its cores.
Config calibration_config(const PreparedRow& prepared, std::size_t cores) {
  const Config& row = prepared.config;
  Config config;
  config.device = row.device;
  config.devices = prepared.placement.devices();
  if (on_cpu(row)) config.devices = std::min(config.devices, static_cast<std::int64_t>(cores));
  config.device_ids = row.device_ids;
  config.timeout = row.timeout;
  config.recalibrate = row.recalibrate;
  config.dtype = compute_format(row);
  config.tf32 = row.tf32;
  config.memory_format = row.memory_format;
  return config;
}

/// Returns "cpu_float32", "cuda_float32_tf32".
std::string calibration_name(const Config& config) {
  return fmt::format("{}_{}{}", config.device, compute_format(config), config.tf32 ? "_tf32" : "");
}

double peak_of(const CalibrateDeviceResult& rates) {
  return std::max(rates.gemm_gflops, rates.convolution_gflops);
}

}  // namespace

reports::Values calibrate_devices(std::vector<PreparedRow>& rows,
                                  const MeasureEnvironment& environment, Calibrator& calibrator,
                                  Observer& observer) {
  // Devices that are measured together share power and memory: the largest number of them gives the
  // peak for every row of the table.
  std::map<std::string, Config> wanted;
  for (const PreparedRow& row : rows) {
    const Config config = calibration_config(row, environment.cores.size());
    const auto [found, added] = wanted.try_emplace(calibration_name(config), config);
    if (!added && found->second.devices < config.devices) found->second = config;
  }
  observer.phase("calibrating", wanted.size());
  const auto contradiction = [](const CalibrateDeviceResult& rates) {
    return peak_of(rates) > 0 ? "" : "no peak was found";
  };
  reports::Values facts;
  for (const auto& [name, config] : wanted) {
    observer.begin(name, "");
    const auto [launched, basis] =
        calibrator.calibrate(work_of(config), job_about<CalibrateDeviceJob>(config), contradiction);
    if (launched.status == LaunchStatus::interrupted) throw Interrupted();
    if (launched.status != LaunchStatus::ok) {
      observer.note(fmt::format("no peak rates of {}: {}", name, launched.error.message));
      observer.end(std::nullopt);
      continue;
    }
    const std::string prefix = wanted.size() == 1 ? "" : name + "_";
    reports::each_field(launched.result, [&](std::string_view rate, double value) {
      facts.emplace_back(fmt::format("{}{}", prefix, rate), value);
    });
    facts.emplace_back(prefix + "age_s", basis.age_s);
    facts.emplace_back(prefix + "canary_ms", canary_ms(launched.conditions));
    facts.emplace_back(prefix + "doubt", basis.doubt);
    if (!basis.doubt.empty()) observer.note(name + ": peak rates are uncertain: " + basis.doubt);
    for (PreparedRow& row : rows) {
      if (calibration_name(row.config) != name || peak_of(launched.result) <= 0) continue;
      const std::int64_t cores = on_cpu(row.config) ? row.config.cores_per_device : 1;
      row.peak_gflops = peak_of(launched.result) * static_cast<double>(cores);
    }
    observer.end(std::nullopt);
  }
  return facts;
}

}  // namespace stratagem::bench
