#include "bench/launch.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "bench/rank_process.h"
#include "bench/unique_fd.h"

namespace stratagem::bench {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using Ranks = std::vector<std::unique_ptr<RankProcess>>;

constexpr auto poll_interval = std::chrono::milliseconds(200);
// After the result's end the worker has only to leave.
constexpr auto leave_limit = std::chrono::seconds(5);
// When one rank has failed, the others may still say so themselves before they are ended.
constexpr auto last_words_limit = std::chrono::seconds(2);

/// Where the ranks of a job meet: a socket bound by the controller and handed to rank 0, so that no
/// other program can take the port in between.
struct MeetingPlace {
  UniqueFd socket;
  int port = 0;
};

MeetingPlace open_meeting_place() {
  const auto fail = [](const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
  };
  MeetingPlace place;
  place.socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!place.socket) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(place.socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) fail("bind");
  if (::getsockname(place.socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail("getsockname");
  }
  place.port = ntohs(address.sin_port);
  return place;
}

/// Waits for all ranks of a job, or for the first that fails.
class Conversation {
 public:
  Conversation(Ranks& ranks, const LaunchOptions& options)
      : ranks_(ranks), options_(options), last_news_(Clock::now()) {}

  LaunchResult run() {
    while (true) {
      wait_for_news();
      if (options_.interrupt != nullptr && options_.interrupt->raised()) {
        for (const auto& rank : ranks_) rank->kill();
        return ranks_.front()->failed(LaunchStatus::interrupted, "interrupted");
      }
      if (all_ended()) return conclusion();
      if (somebody_failed()) {
        if (!failed_since_) failed_since_ = Clock::now();
        if (Clock::now() - *failed_since_ > last_words_limit) return conclusion();
      }
      if (Clock::now() - last_news_ > limit()) return hung();
      if (options_.on_wait) options_.on_wait();
    }
  }

 private:
  void wait_for_news() {
    std::vector<pollfd> waiting{
        {options_.interrupt != nullptr ? options_.interrupt->fd() : -1, POLLIN, 0}};
    bool streams_open = false;
    for (const auto& rank : ranks_) {
      waiting.push_back({rank->result_fd(), POLLIN, 0});
      waiting.push_back({rank->output_fd(), POLLIN, 0});
      streams_open = streams_open || rank->streams_open();
    }
    // With all streams at their end nothing announces the workers' own: look more often.
    const auto patience = streams_open ? poll_interval : std::chrono::milliseconds(1);
    ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
    for (const auto& rank : ranks_) {
      if (rank->read()) last_news_ = Clock::now();
    }
  }

  bool all_ended() const {
    return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->ended(); });
  }

  bool somebody_failed() const {
    return std::ranges::any_of(ranks_, [](const auto& rank) {
      return rank->ended() && rank->result().status != LaunchStatus::ok;
    });
  }

  std::chrono::duration<double> limit() const {
    const bool leaving =
        std::ranges::all_of(ranks_, [](const auto& rank) { return rank->leaving(); });
    return leaving ? std::min(options_.limit, {leave_limit}) : options_.limit;
  }

  /// Rank 0's result, or the failure that explains most: a crash, before an error of the rank's
  /// own, before a rank that somebody stopped, before an error about another rank.
  LaunchResult conclusion() {
    const RankProcess* cause = nullptr;
    for (const auto& rank : ranks_) {
      if (!rank->ended() || rank->result().status == LaunchStatus::ok) continue;
      if (cause == nullptr || rank->blame() < cause->blame()) cause = rank.get();
    }
    if (cause == nullptr) return ranks_.front()->result();
    if (cause->blame() == RankProcess::Blame::of_another) {
      if (const RankProcess* stopped = stopped_rank()) return stopped_still(*stopped);
    }
    return cause->result();
  }

  const RankProcess* stopped_rank() const {
    for (const auto& rank : ranks_) {
      if (!rank->ended() && rank->stopped()) return rank.get();
    }
    return nullptr;
  }

  static LaunchResult stopped_still(const RankProcess& rank) {
    return rank.failed(
        LaunchStatus::hung,
        fmt::format("rank {} was stopped (SIGSTOP?) and the others waited in vain", rank.rank()));
  }

  LaunchResult hung() {
    if (ranks_.size() > 1) {
      if (const RankProcess* stopped = stopped_rank()) return stopped_still(*stopped);
    }
    const auto silent =
        std::ranges::find_if(ranks_, [](const auto& rank) { return !rank->ended(); });
    const RankProcess& rank = silent == ranks_.end() ? *ranks_.front() : **silent;
    const std::string action = rank.last_action();
    for (const auto& other : ranks_) other->kill();
    return rank.failed(
        LaunchStatus::hung,
        fmt::format("rank {} hung: no result within {:g} s; last action {}", rank.rank(),
                    options_.limit.count(), action.empty() ? "none" : action));
  }

  Ranks& ranks_;
  const LaunchOptions& options_;
  Clock::time_point last_news_;
  std::optional<Clock::time_point> failed_since_;
};

}  // namespace

LaunchResult launch(const json& job, const LaunchOptions& options) {
  Ranks ranks;
  if (options.ranks == 1) {
    ranks.push_back(std::make_unique<RankProcess>(0, job, options, -1));
    return Conversation(ranks, options).run();
  }
  MeetingPlace place = open_meeting_place();
  for (int rank = 0; rank < options.ranks; ++rank) {
    json own = job;
    own["rendezvous"] = {{"rank", rank},
                         {"world_size", options.ranks},
                         {"port", place.port},
                         {"timeout", options.rendezvous_timeout.count()}};
    if (rank == 0) own["rendezvous"]["listening_fd"] = inherited_store_fd;
    ranks.push_back(
        std::make_unique<RankProcess>(rank, own, options, rank == 0 ? place.socket.get() : -1));
  }
  place.socket.reset();
  return Conversation(ranks, options).run();
}

}  // namespace stratagem::bench
