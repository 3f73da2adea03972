#include "bench/launch/rank_supervisor.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

namespace stratagem::bench {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(200);
// When one rank has failed, the others may still report theirs before they are ended.
constexpr auto last_words_limit = std::chrono::seconds(2);
// A lost connection explains nothing: finding the lost rank may take this long.
constexpr auto stall_limit = std::chrono::seconds(5);

}  // namespace

RankSupervisor::RankSupervisor(RankHandles& ranks, const LaunchOptions& options,
                               std::chrono::duration<double> patience)
    : ranks_(ranks), options_(options), patience_(patience), last_news_(Clock::now()) {}

LaunchResult RankSupervisor::run() {
  while (true) {
    wait_for_news();
    if (is_unwanted()) {
      kill_all();
      return ranks_.front()->failed(LaunchStatus::interrupted, "interrupted");
    }
    if (all_ended()) return conclusion();
    if (somebody_failed()) {
      if (!failed_since_) failed_since_ = Clock::now();
      if (Clock::now() - *failed_since_ > (is_explained() ? last_words_limit : stall_limit)) {
        const LaunchResult result = conclusion();
        kill_all();
        return result;
      }
    }
    if (Clock::now() - last_news_ > limit()) return hung();
    if (options_.on_wait) options_.on_wait();
  }
}

bool RankSupervisor::is_unwanted() {
  if (options_.cancelled && options_.cancelled()) return true;
  if (options_.interrupt == nullptr || !options_.interrupt->raised()) return false;
  if (leaving_since_) return Clock::now() - *leaving_since_ > limit();
  if (!options_.on_interrupt || !options_.on_interrupt()) return true;
  leaving_since_ = Clock::now();
  return false;
}

void RankSupervisor::wait_for_news() {
  const bool may_interrupt = options_.interrupt != nullptr && !leaving_since_;
  std::vector<pollfd> waiting{{may_interrupt ? options_.interrupt->fd() : -1, POLLIN, 0}};
  bool streams_open = false;
  for (const auto& rank : ranks_) {
    waiting.push_back({rank->result_fd(), POLLIN, 0});
    waiting.push_back({rank->output_fd(), POLLIN, 0});
    streams_open = streams_open || rank->result_fd() >= 0 || rank->output_fd() >= 0;
  }
  // After the end of all streams nothing announces the end of the workers: look more often.
  const bool leaving = !streams_open && std::ranges::any_of(ranks_, [](const auto& rank) {
    return rank->is_local() && !rank->ended();
  });
  const auto patience = leaving ? std::chrono::milliseconds(1) : poll_interval;
  ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
  for (const auto& rank : ranks_) {
    if (rank->read()) last_news_ = Clock::now();
  }
}

bool RankSupervisor::all_ended() const {
  return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->ended(); });
}

bool RankSupervisor::somebody_failed() const {
  return std::ranges::any_of(ranks_, [](const auto& rank) {
    return rank->ended() && rank->result().status != LaunchStatus::ok;
  });
}

bool RankSupervisor::is_explained() const {
  return absent_rank() != nullptr || std::ranges::any_of(ranks_, [](const auto& rank) {
           return rank->ended() && rank->result().status != LaunchStatus::ok &&
                  rank->cause() != RankHandle::FailureCause::peer_lost;
         });
}

bool RankSupervisor::leaving() const {
  return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->leaving(); });
}

std::chrono::duration<double> RankSupervisor::limit() const {
  if (leaving()) return std::min(options_.limit, options_.leave_limit);
  return absent_rank() != nullptr ? std::min(options_.limit, patience_) : options_.limit;
}

/// Returns rank 0's result, or the failure that explains most: a crash, then an error of the rank's
/// own, then a missing rank, then an error about another rank. A rank that has run out of time
/// beside a missing rank has waited for it.
LaunchResult RankSupervisor::conclusion() const {
  const RankHandle* cause = nullptr;
  for (const auto& rank : ranks_) {
    if (!rank->ended() || rank->result().status == LaunchStatus::ok) continue;
    if (cause == nullptr || rank->cause() < cause->cause()) cause = rank.get();
  }
  if (cause == nullptr) return ranks_.front()->result();
  const bool waited = cause->cause() == RankHandle::FailureCause::peer_lost ||
                      cause->result().status == LaunchStatus::hung;
  const RankHandle* missing = waited ? absent_rank() : nullptr;
  return missing != nullptr ? absent(*missing) : cause->result();
}

const RankHandle* RankSupervisor::absent_rank() const {
  for (const auto& rank : ranks_) {
    if (!rank->ended() && rank->stall_reason()) return rank.get();
  }
  return nullptr;
}

LaunchResult RankSupervisor::absent(const RankHandle& rank) const {
  return rank.failed(
      LaunchStatus::hung,
      fmt::format("rank {} {}{}", rank.rank(), rank.stall_reason().value_or("went on"),
                  ranks_.size() > 1 ? " while the other ranks waited" : ""));
}

LaunchResult RankSupervisor::hung() {
  if (const RankHandle* missing = absent_rank()) {
    const LaunchResult result = absent(*missing);
    kill_all();
    return result;
  }
  const auto silent = std::ranges::find_if(ranks_, [](const auto& rank) { return !rank->ended(); });
  const RankHandle& rank = silent == ranks_.end() ? *ranks_.front() : **silent;
  const std::string action = rank.last_action();
  const char* const missing = leaving() ? "it returned its result but did not exit" : "no result";
  const double seconds = limit().count();
  kill_all();
  return rank.failed(LaunchStatus::hung,
                     fmt::format("rank {} hung: {} within {:g} s; last action {}", rank.rank(),
                                 missing, seconds, action.empty() ? "none" : action));
}

void RankSupervisor::kill_all() const {
  for (const auto& rank : ranks_) rank->kill();
}

}  // namespace stratagem::bench
