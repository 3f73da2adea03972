#include "bench/timing/straggler.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "strategies/runtime/parse.h"

namespace stratagem::bench {
namespace {

/// Finds the forward pass that was performed first. A rank's devices ask from their own threads.
class FirstForward {
 public:
  bool is(const schedules::Action& action) {
    if (action.kind != schedules::ActionKind::forward) return false;
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = action;
    return action == *first_;
  }

 private:
  std::mutex mutex_;
  std::optional<schedules::Action> first_;
};

}  // namespace

std::optional<Straggler> straggler_of(const Config& config, int ranks) {
  if (config.straggler == "none") return std::nullopt;
  const std::string_view text = config.straggler;
  const auto colon = text.find(':');
  const auto rank = runtime::number_in<int>(text.substr(0, colon));
  const auto milliseconds = runtime::number_in<double>(text.substr(colon + 1));
  if (colon == std::string_view::npos || !rank || !milliseconds || !(*milliseconds > 0)) {
    throw std::invalid_argument(
        fmt::format("--straggler \"{}\": expected RANK:MS, such as 1:50", config.straggler));
  }
  if (*rank < 0 || *rank >= ranks) {
    throw std::invalid_argument(
        fmt::format("--straggler {}: the row's ranks are 0 to {}", config.straggler, ranks - 1));
  }
  return Straggler{*rank, std::chrono::duration<double, std::milli>(*milliseconds)};
}

std::function<void(const schedules::Action&)> with_straggler(
    const std::optional<Straggler>& straggler, int rank,
    std::function<void(const schedules::Action&)> next) {
  if (!straggler || straggler->rank != rank) return next;
  return [delay = straggler->delay, first = std::make_shared<FirstForward>(),
          next = std::move(next)](const schedules::Action& action) {
    if (first->is(action)) std::this_thread::sleep_for(delay);
    if (next) next(action);
  };
}

}  // namespace stratagem::bench
