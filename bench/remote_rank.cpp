#include "bench/remote_rank.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace stratagem::bench {

namespace {

constexpr auto look_interval = std::chrono::milliseconds(100);
// Presence is noted several times a second: after so long somebody is gone.
constexpr std::chrono::duration<double> silence_of_the_gone{3};

}  // namespace

namespace notes {

std::string job(int number) { return fmt::format("job/{}", number); }
std::string abort(int number) { return fmt::format("abort/{}", number); }
std::string answer(int number, int rank) { return fmt::format("answer/{}/{}", number, rank); }
std::string presence(int rank) { return fmt::format("presence/{}", rank); }

}  // namespace notes

Presence::Presence(runtime::Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

bool Presence::refresh() {
  std::string note = meeting_.find(notes::presence(rank_)).value_or("");
  if (note == note_) return false;
  note_ = std::move(note);
  last_ = std::chrono::steady_clock::now();
  const nlohmann::json value = nlohmann::json::parse(note_, nullptr, /*allow_exceptions=*/false);
  if (value.is_object()) {
    activity_ = value.value("activity", "");
    host_ = value.value("host", "");
    absence_ = value.value("absence", "");
  }
  return true;
}

std::chrono::duration<double> Presence::silence() const {
  return std::chrono::steady_clock::now() - last_;
}

RemoteRank::RemoteRank(int rank, int job, runtime::Meeting& meeting)
    : RankHandle(rank), job_(job), meeting_(meeting), presence_(meeting, rank) {}

bool RemoteRank::read() {
  const auto now = std::chrono::steady_clock::now();
  if (ended_ || now - last_look_ < look_interval) return false;
  last_look_ = now;
  presence_.refresh();
  if (const auto note = meeting_.find(notes::answer(job_, rank()))) {
    outcome_ = outcome_from_json(nlohmann::json::parse(*note));
    ended_ = true;
    return true;
  }
  const bool news = presence_.activity() != activity_;
  activity_ = presence_.activity();
  return news;
}

void RemoteRank::kill() { meeting_.set(notes::abort(job_), "1"); }

std::optional<std::string> RemoteRank::absence() const {
  if (!ended_ && !presence_.absence().empty()) return presence_.absence();
  if (!silent()) return std::nullopt;
  return fmt::format("{}was not heard of for {:.0f} s (killed, or stopped?)",
                     presence_.host().empty() ? "" : "on " + presence_.host() + " ",
                     presence_.silence().count());
}

bool RemoteRank::silent() const { return !ended_ && presence_.silence() > silence_of_the_gone; }

LaunchResult RemoteRank::failed(LaunchStatus status, std::string message) const {
  LaunchResult launched;
  launched.status = status;
  launched.error = {.rank = rank(),
                    .host = presence_.host(),
                    .last_action = presence_.activity(),
                    .message = std::move(message)};
  return launched;
}

}  // namespace stratagem::bench
