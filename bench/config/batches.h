// Chooses the batches that the steps of a launch train on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bench/config/config.h"

namespace stratagem::bench {

/// A launch trains on several batches in turn, so that a step that wrongly uses the batch of the
/// step before has another loss. It draws them before its first step, so the memory that they take
/// in each process limits their number.
inline constexpr std::int64_t most_batches_in_turn = 8;
inline constexpr std::int64_t fewest_batches_in_turn = 2;
inline constexpr std::int64_t elements_of_all_batches = std::int64_t{1}
                                                        << 27;  // 512 MiB of float32

/// Returns the number of different batches, of `batch_elements` input elements each, in a row's
/// steps. With `--inputs device` there is one, which stays on the device.
inline std::int64_t different_batches(const Config& config, std::int64_t batch_elements) {
  if (config.inputs == "device") return 1;
  if (config.protocol == "tutorial") return config.steps;
  return std::clamp(elements_of_all_batches / std::max<std::int64_t>(batch_elements, 1),
                    fewest_batches_in_turn, most_batches_in_turn);
}

}  // namespace stratagem::bench
