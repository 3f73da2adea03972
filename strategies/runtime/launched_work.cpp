#include "strategies/runtime/launched_work.h"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include "strategies/runtime/first_line.h"

namespace stratagem::runtime {
namespace {

constexpr std::chrono::microseconds poll_interval{50};

}  // namespace

void LaunchedWork::add(Stream stream, std::string label, EventPointer end) {
  const std::lock_guard lock(mutex_);
  pieces_.at(static_cast<std::size_t>(stream)).push_back({std::move(label), std::move(end)});
}

void LaunchedWork::wait(const std::function<bool()>& ended, std::chrono::milliseconds limit) {
  auto last_end = Monitor::Clock::now();
  while (!monitor_->failed()) {
    try {
      const bool one_ended = drop_ended();
      if (ended()) break;
      const auto now = Monitor::Clock::now();
      if (one_ended) last_end = now;
      if (now - last_end > limit) {
        monitor_->fail(std::make_exception_ptr(DeviceTimeout(overrun(limit))));
      }
    } catch (const std::exception& error) {
      monitor_->fail(std::make_exception_ptr(
          std::runtime_error(fmt::format("{}: {}", device_, first_line(error)))));
    }
    std::this_thread::sleep_for(poll_interval);
  }
  monitor_->rethrow_if_failed();
}

/// Drops ended pieces and returns whether there were any.
bool LaunchedWork::drop_ended() {
  const std::lock_guard lock(mutex_);
  bool dropped = false;
  for (std::deque<Piece>& stream : pieces_) {
    while (!stream.empty() && stream.front().end->complete()) {
      stream.pop_front();
      dropped = true;
    }
  }
  return dropped;
}

/// Returns an error with the current piece of each stream.
std::string LaunchedWork::overrun(std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  std::string labels;
  for (const std::deque<Piece>& stream : pieces_) {
    if (!stream.empty()) labels += (labels.empty() ? "" : " and ") + stream.front().label;
  }
  return fmt::format("{} has been in {} for more than {:.3g} s (--timeout)", device_,
                     labels.empty() ? "its kernels" : "the kernels of " + labels,
                     std::chrono::duration<double>(limit).count());
}

}  // namespace stratagem::runtime
