#include "bench/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/conversation.h"
#include "bench/guarded_main.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/rank_process.h"
#include "bench/remote_rank.h"
#include "strategies/runtime/communication_error.h"
#include "strategies/runtime/listening_socket.h"

namespace stratagem::bench {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto presence_interval = std::chrono::milliseconds(500);
constexpr auto look_interval = std::chrono::milliseconds(50);
// Rank 0 may serve the meeting: it stays until the others have read its last note, or so long.
constexpr auto farewell_limit = std::chrono::seconds(5);

std::string arrival(int rank) { return fmt::format("arrival/{}", rank); }
std::string departure(int rank) { return fmt::format("departure/{}", rank); }

}  // namespace

Cluster::Cluster(std::unique_ptr<runtime::Meeting> meeting, const ClusterOptions& options)
    : options_(options), meeting_(std::move(meeting)), exit_code_(exit_codes::lost) {
  arrive();
  presence_ = std::jthread([this](const std::stop_token& stop) { note_presence(stop); });
}

Cluster::~Cluster() {
  try {
    if (options_.place.rank == 0) {
      meeting_->set(notes::job(next_job_), json{{"end", exit_code_}}.dump());
      known_loss();
      const auto limit = Clock::now() + farewell_limit;
      for (int rank = 1; rank < options_.place.world_size; ++rank) {
        while (!lost_.contains(rank) && !meeting_->find(departure(rank)) && Clock::now() < limit) {
          std::this_thread::sleep_for(look_interval);
        }
      }
    } else {
      meeting_->set(departure(options_.place.rank), "1");
    }
  } catch (const std::exception&) {
    return;  // the meeting is gone, and with it those who were to be told
  }
}

std::string Cluster::who() const {
  return fmt::format("rank {} of {} ({})", options_.place.rank, options_.place.world_size,
                     options_.launcher);
}

/// Everyone leaves a card and reads all others'.
void Cluster::arrive() {
  const int own = options_.place.rank;
  if (meeting_->add(fmt::format("claim/{}", own), 1) > 1) {
    throw std::invalid_argument(fmt::format("two processes say that they are {}", who()));
  }
  meeting_->set(arrival(own),
                json{{"world_size", options_.place.world_size}, {"host", host_name()}}.dump());
  const auto limit = Clock::now() + options_.timeout;
  std::vector<std::string> hosts;
  for (int rank = 0; rank < options_.place.world_size; ++rank) {
    auto note = meeting_->find(arrival(rank));
    while (!note) {
      if (options_.interrupt != nullptr && options_.interrupt->raised()) {
        throw runtime::CommunicationError(who() +
                                          " was interrupted while it waited for the others");
      }
      if (Clock::now() > limit) {
        throw runtime::CommunicationError(fmt::format(
            "{} waited {:g} s in vain for rank {} to come", who(), options_.timeout.count(), rank));
      }
      std::this_thread::sleep_for(look_interval);
      note = meeting_->find(arrival(rank));
    }
    const json card = json::parse(*note);
    compare_with(rank, card);
    hosts.push_back(card.at("host"));
  }
  settle_local_ranks(hosts);
}

void Cluster::compare_with(int rank, const json& note) const {
  const int world = note.at("world_size").get<int>();
  if (world == options_.place.world_size) return;
  throw std::invalid_argument(
      fmt::format("{}: rank {} says that there are {}; give all ranks the "
                  "same --world-size",
                  who(), rank, world));
}

/// Which of its host's ranks this is; what a launcher says of it holds for its own hosts only.
void Cluster::settle_local_ranks(const std::vector<std::string>& hosts) {
  const auto own = static_cast<std::size_t>(options_.place.rank);
  const auto before = hosts.begin() + static_cast<std::ptrdiff_t>(own);
  options_.place.local_rank = static_cast<int>(std::count(hosts.begin(), before, hosts[own]));
  options_.place.local_world_size =
      static_cast<int>(std::count(hosts.begin(), hosts.end(), hosts[own]));
  const bool several_hosts = options_.place.local_world_size < options_.place.world_size;
  if (several_hosts && options_.master_address == "127.0.0.1") {
    options_.master_address = hosts.front();
  }
}

void Cluster::note_presence(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  for (std::int64_t count = 0; !stop.stop_requested(); ++count) {
    json note{{"count", count}, {"host", host_name()}};
    {
      const std::lock_guard guard(mutex_);
      note["activity"] = activity_;
      note["absence"] = absence_;
    }
    try {
      meeting_->set(notes::presence(options_.place.rank), note.dump());
    } catch (const runtime::CommunicationError&) {
      return;  // whoever looks for a job will find out
    }
    wake.wait_for(lock, stop, presence_interval, [] { return false; });
  }
}

void Cluster::say(const std::string& activity, const std::string& absence) {
  const std::lock_guard guard(mutex_);
  activity_ = activity;
  absence_ = absence;
}

int Cluster::lead(const std::function<int()>& body) {
  try {
    exit_code_ = body();
    return exit_code_;
  } catch (const Interrupted&) {
    exit_code_ = exit_codes::interrupted;
    throw;
  } catch (const std::invalid_argument&) {
    exit_code_ = exit_codes::usage;
    throw;
  } catch (const std::system_error&) {
    exit_code_ = exit_codes::usage;
    throw;
  }
}

/// A rank that was only stopped is heard of again soon after it goes on.
std::optional<LaunchResult> Cluster::known_loss() {
  const auto limit = Clock::now() + 2 * presence_interval;
  while (!lost_.empty()) {
    for (auto entry = lost_.begin(); entry != lost_.end();) {
      entry = entry->second.presence.refresh() ? lost_.erase(entry) : std::next(entry);
    }
    if (!lost_.empty() && Clock::now() > limit) return lost_.begin()->second.failure;
    if (!lost_.empty()) std::this_thread::sleep_for(look_interval);
  }
  return std::nullopt;
}

LaunchResult Cluster::launch(const json& job, const LaunchOptions& options) {
  if (auto failure = known_loss()) return *std::move(failure);
  const int number = next_job_++;
  runtime::ListeningSocket place = runtime::listen_on(options_.master_address);
  json note{{"job", job},
            {"address", options_.master_address},
            {"port", place.port},
            {"timeout", options.rendezvous_timeout.count()},
            {"limit", options.limit.count()}};
  meeting_->set(notes::job(number), note.dump());
  json own = job;
  own["rendezvous"] = note;
  own["rendezvous"].erase("job");
  own["rendezvous"]["place"] = {0, options_.place.world_size, options_.place.local_rank,
                                options_.place.local_world_size};
  own["rendezvous"]["listening_fd"] = inherited_store_fd;
  RankHandles ranks;
  ranks.push_back(std::make_unique<RankProcess>(0, own, options, place.socket.get()));
  place.socket.reset();
  std::vector<RemoteRank*> others;
  for (int rank = 1; rank < options_.place.world_size; ++rank) {
    auto other = std::make_unique<RemoteRank>(rank, number, *meeting_);
    others.push_back(other.get());
    ranks.push_back(std::move(other));
  }
  LaunchResult launched = Conversation(ranks, options).run();
  for (RemoteRank* other : others) {
    other->read();  // ending the other ranks may have taken a while
    if (!other->silent()) continue;
    Presence presence(*meeting_, other->rank());
    presence.refresh();
    lost_.emplace(other->rank(),
                  Lost{presence, other->failed(LaunchStatus::hung,
                                               fmt::format("rank {} is lost: nothing was heard of "
                                                           "it in an earlier launch",
                                                           other->rank()))});
  }
  return launched;
}

int Cluster::follow() {
  try {
    return follow_the_first();
  } catch (const runtime::CommunicationError& error) {
    const std::string text = error.what();
    throw runtime::CommunicationError(text.starts_with(who()) ? text : who() + ": " + text);
  }
}

int Cluster::follow_the_first() {
  Presence leader(*meeting_, 0);
  while (true) {
    if (options_.interrupt != nullptr && options_.interrupt->raised()) {
      return exit_codes::interrupted;
    }
    leader.refresh();
    const auto note = meeting_->find(notes::job(next_job_));
    if (!note) {
      if (leader.silence() > options_.timeout) {
        throw runtime::CommunicationError(
            fmt::format("{}: nothing heard of rank 0 for {:g} s", who(), options_.timeout.count()));
      }
      std::this_thread::sleep_for(look_interval);
      continue;
    }
    const json wanted = json::parse(*note);
    if (wanted.contains("end")) return wanted.at("end").get<int>();
    perform(next_job_++, wanted);
  }
}

/// Runs this rank's worker of a job and answers.
LaunchResult Cluster::perform(int number, const json& note) {
  LaunchOptions options;
  options.command = options_.worker_command;
  options.limit = std::chrono::duration<double>(note.at("limit").get<double>());
  options.rendezvous_timeout = std::chrono::duration<double>(note.at("timeout").get<double>());
  options.interrupt = options_.interrupt;
  options.verbose = options_.verbose;
  const auto [rank, world, local_rank, local_world] = options_.place;
  json job = note.at("job");
  job["rendezvous"] = note;
  job["rendezvous"].erase("job");
  job["rendezvous"]["place"] = {rank, world, local_rank, local_world};
  RankHandles ranks;
  ranks.push_back(std::make_unique<RankProcess>(rank, job, options, -1));
  RankHandle& own = *ranks.front();
  auto last_look = Clock::now();
  options.cancelled = [&] {
    say(own.last_action(), own.absence().value_or(""));
    if (Clock::now() - last_look < look_interval) return false;
    last_look = Clock::now();
    return meeting_->find(notes::abort(number)).has_value();
  };
  RankOutcome outcome{Conversation(ranks, options).run(), own.blame()};
  outcome.launched.result = {};
  if (outcome.launched.status == LaunchStatus::interrupted) {  // of a job that was called off,
    outcome.launched.status = LaunchStatus::failure;           // nobody reads the answer
    outcome.launched.error.message = fmt::format("rank {} was interrupted", rank);
  }
  meeting_->set(notes::answer(number, rank),
                to_json(outcome).dump(-1, ' ', false, json::error_handler_t::replace));
  say("", "");
  return outcome.launched;
}

}  // namespace stratagem::bench
