#include "bench/timing/straggler.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace stratagem::bench {

namespace {

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<Straggler> straggler_of(const Config& config, int ranks) {
  if (config.straggler == "none") return std::nullopt;
  const std::string_view text = config.straggler;
  const auto colon = text.find(':');
  Straggler straggler;
  double milliseconds = 0;
  if (colon == std::string_view::npos || !read(text.substr(0, colon), straggler.rank) ||
      !read(text.substr(colon + 1), milliseconds) || !(milliseconds > 0)) {
    throw std::invalid_argument(
        fmt::format("--straggler \"{}\": expected RANK:MS, as 1:50", config.straggler));
  }
  if (straggler.rank < 0 || straggler.rank >= ranks) {
    throw std::invalid_argument(
        fmt::format("--straggler {}: the row's ranks are 0 to {}", config.straggler, ranks - 1));
  }
  straggler.delay = std::chrono::duration<double, std::milli>(milliseconds);
  return straggler;
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
