#include "bench/timing/straggler.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "strategies/runtime/parse.h"

namespace stratagem::bench {

std::optional<Straggler> straggler_of(const Config& config, int ranks) {
  if (config.straggler == "none") return std::nullopt;
  const std::string_view text = config.straggler;
  const auto colon = text.find(':');
  const auto rank = runtime::number_in<int>(text.substr(0, colon));
  const auto milliseconds = runtime::number_in<double>(text.substr(colon + 1));
  if (colon == std::string_view::npos || !rank || !milliseconds || !(*milliseconds > 0)) {
    throw std::invalid_argument(
        fmt::format("--straggler \"{}\": expected RANK:MS, as 1:50", config.straggler));
  }
  if (*rank < 0 || *rank >= ranks) {
    throw std::invalid_argument(
        fmt::format("--straggler {}: the row's ranks are 0 to {}", config.straggler, ranks - 1));
  }
  return Straggler{*rank, std::chrono::duration<double, std::milli>(*milliseconds)};
}

std::function<void(const schedules::Action&)> with_straggler(
    const std::optional<Straggler>& straggler, int rank, int first_stage,
    std::function<void(const schedules::Action&)> next) {
  if (!straggler || straggler->rank != rank) return next;
  const schedules::Action first{schedules::ActionKind::forward, first_stage, 0};
  return
      [delay = straggler->delay, first, next = std::move(next)](const schedules::Action& action) {
        if (action == first) std::this_thread::sleep_for(delay);
        if (next) next(action);
      };
}

}  // namespace stratagem::bench
