// What tests of strategies are made from: small workloads, unpinned CPU devices, a strategy.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/workload.h"
#include "strategies/backends/backend.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"
#include "strategies/stages/partition.h"
#include "strategies/strategy.h"

namespace stratagem::strategies {

inline backends::DeviceGroup unpinned_devices(int count) {
  backends::DeviceGroup group;
  group.monitor = std::make_shared<runtime::Monitor>();
  for (int index = 0; index < count; ++index) {
    runtime::DeviceDescription description;
    description.index = index;
    group.devices.push_back(backends::make_cpu_device(description, group.monitor, nullptr));
  }
  return group;
}

/// float64 at a width that trains in milliseconds, with verification's optimizer for SGD.
inline models::WorkloadOptions small_workload(const std::string& model, std::int64_t batch) {
  models::WorkloadOptions options;
  options.model = model;
  options.batch = batch;
  options.dtype = at::kDouble;
  options.optimizer = {.learning_rate = 0.1, .momentum = 0.9};
  options.seed = 3;
  if (model == "mlp") {
    options.width = 0.02;
    options.classes = 7;
  } else if (model.starts_with("gpt") || model.starts_with("llama")) {
    options.width = 0.125;
    options.sequence_length = 8;
    options.loss = models::Loss::cross_entropy;
  } else if (model != "toy") {
    options.width = 0.125;
    options.image_size = 36;  // 2x2 positions in the last feature maps
    options.classes = 10;
  }
  return options;
}

/// A strategy with all that it refers to. The strategy goes first, then its devices.
struct Training {
  Training(const models::WorkloadOptions& workload_options, int devices)
      : Training(workload_options, unpinned_devices(devices)) {}
  Training(const models::WorkloadOptions& workload_options, backends::DeviceGroup on)
      : workload(workload_options), group(std::move(on)) {}

  StrategyContext context(StrategyOptions options = {}) {
    options.split_size = std::min(options.split_size, workload.options().batch);
    cut_if_missing(options, static_cast<int>(group.devices.size()));
    return {.workload = workload, .devices = group.devices, .options = std::move(options)};
  }

  /// By operations, into the stages that the schedule has on so many devices, if there are layers.
  void cut_if_missing(StrategyOptions& options, int devices) const {
    const auto& schedule = schedules::find_schedule(options.schedule);
    const int stages = devices * schedule.stages_for(static_cast<int>(options.virtual_stages));
    if (!options.cut.empty() || stages > workload.entry().layers) return;
    options.cut = stages::choose_cut(workload, stages, "flops");
  }

  Strategy& make(const std::string& name, StrategyOptions options = {}) {
    strategy = find_strategy(name).make(context(std::move(options)));
    return *strategy;
  }

  models::Workload workload;
  backends::DeviceGroup group;
  std::unique_ptr<Strategy> strategy;
};

/// Of any element of the entries, which are to be the same.
inline double largest_difference(const StateDictionary& a, const StateDictionary& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (const auto& [name, tensor] : a) {
    if (!b.contains(name)) {
      ADD_FAILURE() << name << " is missing";
      continue;
    }
    const at::Tensor difference = (tensor.to(at::kDouble) - b.at(name).to(at::kDouble)).abs();
    largest = std::max(largest, difference.max().item<double>());
  }
  return largest;
}

}  // namespace stratagem::strategies
