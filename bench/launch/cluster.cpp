#include "bench/launch/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "bench/launch/exit_codes.h"
#include "bench/launch/local_rank.h"
#include "bench/launch/rank_supervisor.h"
#include "bench/machine/machine.h"
#include "strategies/ranks/listening_socket.h"
#include "strategies/runtime/communication_error.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto heartbeat_interval = std::chrono::milliseconds(500);
constexpr auto cluster_poll_interval = std::chrono::milliseconds(50);
// Rank 0 may serve the store: it stays this long at most, until the others have read its last key.
constexpr auto shutdown_limit = std::chrono::seconds(5);

std::string arrival(int rank) { return fmt::format("arrival/{}", rank); }
std::string deregistration(int rank) { return fmt::format("deregistration/{}", rank); }

}  // namespace

Cluster::Cluster(std::unique_ptr<ranks::KeyValueStore> store, const ClusterOptions& options)
    : options_(options), store_(std::move(store)), exit_code_(exit_codes::lost) {
  register_rank();
  heartbeat_ = std::jthread([this](const std::stop_token& stop) { send_heartbeat(stop); });
}

Cluster::~Cluster() {
  try {
    if (options_.info.rank == 0) {
      store_->set(notes::job(next_job_), json{{"end", exit_code_}}.dump());
      known_loss();
      const auto limit = Clock::now() + shutdown_limit;
      for (int rank = 1; rank < options_.info.world_size; ++rank) {
        while (!lost_.contains(rank) && !store_->find(deregistration(rank)) &&
               Clock::now() < limit) {
          std::this_thread::sleep_for(cluster_poll_interval);
        }
      }
    } else {
      store_->set(deregistration(options_.info.rank), "1");
    }
  } catch (const std::exception&) {
    return;  // the store is gone, and with it the other ranks
  }
}

std::string Cluster::who() const {
  return fmt::format("rank {} of {} ({})", options_.info.rank, options_.info.world_size,
                     options_.launcher);
}

/// Every rank stores its own facts and reads those of all others.
void Cluster::register_rank() {
  const int own = options_.info.rank;
  if (store_->add(fmt::format("claim/{}", own), 1) > 1) {
    throw std::invalid_argument(fmt::format("two processes are started as {}", who()));
  }
  store_->set(arrival(own),
              json{{"world_size", options_.info.world_size}, {"host", host_name()}}.dump());
  const auto limit = Clock::now() + options_.timeout;
  std::vector<std::string> hosts;
  for (int rank = 0; rank < options_.info.world_size; ++rank) {
    auto note = store_->find(arrival(rank));
    while (!note) {
      if (options_.interrupt != nullptr && options_.interrupt->raised()) {
        throw runtime::CommunicationError(who() +
                                          " was interrupted while it waited for the others");
      }
      if (Clock::now() > limit) {
        throw runtime::CommunicationError(
            fmt::format("{} waited {:g} s, but rank {} did not connect", who(),
                        options_.timeout.count(), rank));
      }
      std::this_thread::sleep_for(cluster_poll_interval);
      note = store_->find(arrival(rank));
    }
    const json rank_info = json::parse(*note);
    compare_with(rank, rank_info);
    hosts.push_back(rank_info.at("host"));
  }
  settle_local_ranks(hosts);
}

void Cluster::compare_with(int rank, const json& note) const {
  const int world = note.at("world_size").get<int>();
  if (world == options_.info.world_size) return;
  throw std::invalid_argument(
      fmt::format("{}: rank {} has --world-size {}; give all ranks the same", who(), rank, world));
}

/// Finds this rank's index on its host; a launcher's index holds for its own hosts only.
void Cluster::settle_local_ranks(const std::vector<std::string>& hosts) {
  const auto own = static_cast<std::size_t>(options_.info.rank);
  const auto before = hosts.begin() + static_cast<std::ptrdiff_t>(own);
  options_.info.local_rank = static_cast<int>(std::count(hosts.begin(), before, hosts[own]));
  options_.info.local_world_size =
      static_cast<int>(std::count(hosts.begin(), hosts.end(), hosts[own]));
  const bool several_hosts = options_.info.local_world_size < options_.info.world_size;
  if (several_hosts && options_.master_address == "127.0.0.1") {
    options_.master_address = hosts.front();
  }
}

void Cluster::send_heartbeat(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  for (std::int64_t count = 0; !stop.stop_requested(); ++count) {
    json note{{"count", count}, {"host", host_name()}};
    {
      const std::lock_guard guard(mutex_);
      note["activity"] = activity_;
      note["stall_reason"] = stall_reason_;
    }
    try {
      store_->set(notes::heartbeat(options_.info.rank), note.dump());
    } catch (const runtime::CommunicationError&) {
      return;  // the next read of a job will fail, too
    }
    wake.wait_for(lock, stop, heartbeat_interval, [] { return false; });
  }
}

void Cluster::say(const std::string& activity, const std::string& stall_reason) {
  const std::lock_guard guard(mutex_);
  activity_ = activity;
  stall_reason_ = stall_reason;
}

int Cluster::lead(const std::function<int()>& body) {
  try {
    exit_code_ = body();
    return exit_code_;
  } catch (const std::exception& error) {
    exit_code_ = exit_code_of(error);
    throw;
  }
}

/// A rank that was only stopped sends heartbeats again soon after it continues.
std::optional<LaunchResult> Cluster::known_loss() {
  const auto limit = Clock::now() + 2 * heartbeat_interval;
  while (!lost_.empty()) {
    for (auto entry = lost_.begin(); entry != lost_.end();) {
      entry = entry->second.heartbeat.refresh() ? lost_.erase(entry) : std::next(entry);
    }
    if (!lost_.empty() && Clock::now() > limit) return lost_.begin()->second.failure;
    if (!lost_.empty()) std::this_thread::sleep_for(cluster_poll_interval);
  }
  return std::nullopt;
}

LaunchResult Cluster::launch(const Job& job, const LaunchOptions& options) {
  if (auto failure = known_loss()) return *std::move(failure);
  const int number = next_job_++;
  ranks::ListeningSocket place = ranks::listen_on(options_.master_address);
  Job own = job;
  RendezvousPoint& point = header_of(own).rendezvous.emplace();
  point.address = options_.master_address;
  point.port = place.port;
  const json note{{"job", to_json(own)}, {"limit", options.limit.count()}};
  store_->set(notes::job(number), note.dump());
  point.info = options_.info;
  point.listening_fd = inherited_store_fd;
  RankHandles ranks;
  ranks.push_back(std::make_unique<LocalRank>(0, own, options, place.socket.get()));
  place.socket.reset();
  std::vector<RemoteRank*> others;
  for (int rank = 1; rank < options_.info.world_size; ++rank) {
    auto other = std::make_unique<RemoteRank>(rank, number, *store_);
    others.push_back(other.get());
    ranks.push_back(std::move(other));
  }
  const std::chrono::duration<double> patience(header_of(job).timeout);
  LaunchResult launched = RankSupervisor(ranks, options, patience).run();
  for (RemoteRank* other : others) {
    other->read();  // ending the other ranks may have taken a while
    if (!other->silent()) continue;
    Heartbeat heartbeat(*store_, other->rank());
    heartbeat.refresh();
    lost_.emplace(other->rank(),
                  Lost{heartbeat, other->failed(LaunchStatus::hung,
                                                fmt::format("rank {} is lost: it did not respond "
                                                            "in an earlier launch",
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
  Heartbeat leader(*store_, 0);
  while (true) {
    if (options_.interrupt != nullptr && options_.interrupt->raised()) {
      return exit_codes::interrupted;
    }
    leader.refresh();
    const auto note = store_->find(notes::job(next_job_));
    if (!note) {
      if (leader.since_last_heartbeat() > options_.timeout) {
        throw runtime::CommunicationError(
            fmt::format("{}: rank 0 did not respond for {:g} s", who(), options_.timeout.count()));
      }
      std::this_thread::sleep_for(cluster_poll_interval);
      continue;
    }
    const json wanted = json::parse(*note);
    if (wanted.contains("end")) return wanted.at("end").get<int>();
    perform(next_job_++, wanted);
  }
}

/// Runs this rank's worker of a job and stores its answer.
void Cluster::perform(int number, const json& note) {
  LaunchOptions options;
  options.command = options_.worker_command;
  options.limit = std::chrono::duration<double>(note.at("limit").get<double>());
  options.interrupt = options_.interrupt;
  options.verbose = options_.verbose;
  const int rank = options_.info.rank;
  Job job = job_from_json(note.at("job"));
  header_of(job).rendezvous.value().info = options_.info;
  RankHandles ranks;
  ranks.push_back(std::make_unique<LocalRank>(rank, job, options, -1));
  RankHandle& own = *ranks.front();
  auto last_look = Clock::now();
  options.cancelled = [&] {
    say(own.last_action(), own.stall_reason().value_or(""));
    if (Clock::now() - last_look < cluster_poll_interval) return false;
    last_look = Clock::now();
    return store_->find(notes::abort(number)).has_value();
  };
  const std::chrono::duration<double> patience(header_of(job).timeout);
  RankOutcome outcome{RankSupervisor(ranks, options, patience).run(), own.cause()};
  outcome.launched.result = {};
  if (outcome.launched.status == LaunchStatus::interrupted) {  // nobody reads the answer
    outcome.launched.status = LaunchStatus::failure;           // of a cancelled job
    outcome.launched.error.message = fmt::format("rank {} was interrupted", rank);
  }
  store_->set(notes::answer(number, rank),
              to_json(outcome).dump(-1, ' ', false, json::error_handler_t::replace));
  say("", "");
}

}  // namespace stratagem::bench
