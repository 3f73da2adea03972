#include "bench/launch/remote_rank.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "reports/json_fields.h"

namespace stratagem::bench {
namespace {

constexpr auto answer_poll_interval = std::chrono::milliseconds(100);
// Heartbeats are sent several times a second; a rank without one for this long is lost.
constexpr std::chrono::duration<double> time_until_lost{3};

RankOutcome outcome_from_json(const nlohmann::json& value) {
  RankOutcome outcome;
  outcome.launched.status = static_cast<LaunchStatus>(value.at("status").get<int>());
  outcome.cause = static_cast<RankHandle::FailureCause>(value.at("cause").get<int>());
  reports::json_fields::convert(value.at("error"), "error", outcome.launched.error);
  return outcome;
}

}  // namespace

namespace notes {

std::string job(int number) { return fmt::format("job/{}", number); }
std::string abort(int number) { return fmt::format("abort/{}", number); }
std::string answer(int number, int rank) { return fmt::format("answer/{}/{}", number, rank); }
std::string heartbeat(int rank) { return fmt::format("heartbeat/{}", rank); }

}  // namespace notes

nlohmann::json to_json(const RankOutcome& outcome) {
  return {{"status", static_cast<int>(outcome.launched.status)},
          {"cause", static_cast<int>(outcome.cause)},
          {"error", nlohmann::json(reports::json_fields::json_of(outcome.launched.error))}};
}

Heartbeat::Heartbeat(ranks::KeyValueStore& store, int rank) : store_(store), rank_(rank) {}

bool Heartbeat::refresh() {
  std::string note = store_.find(notes::heartbeat(rank_)).value_or("");
  if (note == note_) return false;
  note_ = std::move(note);
  last_ = std::chrono::steady_clock::now();
  const nlohmann::json value = nlohmann::json::parse(note_, nullptr, /*allow_exceptions=*/false);
  if (value.is_object()) {
    activity_ = value.value("activity", "");
    host_ = value.value("host", "");
    stall_reason_ = value.value("stall_reason", "");
  }
  return true;
}

std::chrono::duration<double> Heartbeat::since_last_heartbeat() const {
  return std::chrono::steady_clock::now() - last_;
}

RemoteRank::RemoteRank(int rank, int job, ranks::KeyValueStore& store)
    : RankHandle(rank), job_(job), store_(store), heartbeat_(store, rank) {}

bool RemoteRank::read() {
  const auto now = std::chrono::steady_clock::now();
  if (ended_ || now - last_look_ < answer_poll_interval) return false;
  last_look_ = now;
  heartbeat_.refresh();
  if (const auto note = store_.find(notes::answer(job_, rank()))) {
    outcome_ = outcome_from_json(nlohmann::json::parse(*note));
    ended_ = true;
    return true;
  }
  const bool news = heartbeat_.activity() != activity_;
  activity_ = heartbeat_.activity();
  return news;
}

void RemoteRank::kill() { store_.set(notes::abort(job_), "1"); }

std::optional<std::string> RemoteRank::stall_reason() const {
  if (!ended_ && !heartbeat_.stall_reason().empty()) return heartbeat_.stall_reason();
  if (!silent()) return std::nullopt;
  return fmt::format("{}did not respond for {:.0f} s (killed, or stopped?)",
                     heartbeat_.host().empty() ? "" : "on " + heartbeat_.host() + " ",
                     heartbeat_.since_last_heartbeat().count());
}

bool RemoteRank::silent() const {
  return !ended_ && heartbeat_.since_last_heartbeat() > time_until_lost;
}

}  // namespace stratagem::bench
