// Which batch each step of a launch trains on.
#pragma once

#include <cstdint>

#include "bench/config/config.h"

namespace stratagem::bench {

/// So many batches a launch trains on, one after the other and from the first one again: a step
/// that computes with an earlier step's batch has another loss.
inline constexpr std::int64_t batches_in_turn = 8;

/// How many different batches the steps of a row have. On the device a batch stays where it is.
inline std::int64_t different_batches(const Config& config) {
  if (config.inputs == "device") return 1;
  return config.protocol == "tutorial" ? config.steps : batches_in_turn;
}

/// The number of a step's batch, counted from the launch's first step.
inline std::uint64_t batch_of_step(const Config& config, std::int64_t step) {
  return static_cast<std::uint64_t>(step % different_batches(config));
}

}  // namespace stratagem::bench
