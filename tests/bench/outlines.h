// Outlines of the strategies that tests register.
#pragma once

#include <string>

#include "strategies/plan.h"

namespace stratagem::bench {

/// Micro-batches of --split-size. An empty `schedule`: what --schedule says.
inline strategies::Outline cut_by_size(const std::string& schedule = "") {
  return [schedule](const strategies::PlanRequest& request) {
    return strategies::PlanOutline{
        .schedule = schedule.empty() ? request.options.schedule : schedule,
        .cut_by = strategies::MicroBatchOption::split_size};
  };
}

/// One stage, and micro-batches of --accumulation-steps.
inline strategies::Outline cut_by_count() {
  return [](const strategies::PlanRequest&) {
    return strategies::PlanOutline{.cut_by = strategies::MicroBatchOption::accumulation_steps};
  };
}

}  // namespace stratagem::bench
