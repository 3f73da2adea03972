// Delays a rank (--straggler): the breakdown of the step shows what a slow or shared host does to
// the others.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "bench/config/config.h"
#include "strategies/schedules/action.h"

namespace stratagem::bench {

struct Straggler {
  int rank = 0;
  std::chrono::duration<double, std::milli> delay{0};
};

/// Returns nothing for "none". Throws std::invalid_argument, one line, unless it is RANK:MS with a
/// rank of the row.
std::optional<Straggler> straggler_of(const Config& config, int ranks);

/// Sleeps before the first forward pass of each step on the straggler, then calls `next`, which may
/// be empty. `rank` is this one. The first forward pass that it performs counts as the first of
/// every step, wherever the schedule places its stages.
std::function<void(const schedules::Action&)> with_straggler(
    const std::optional<Straggler>& straggler, int rank,
    std::function<void(const schedules::Action&)> next);

}  // namespace stratagem::bench
