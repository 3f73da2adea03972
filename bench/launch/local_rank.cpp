#include "bench/launch/local_rank.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

#include "reports/json_fields.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

constexpr std::size_t kept_output = 64 * 1024;

/// Appends what can be read; returns false at the end of the stream.
bool read_available(int fd, std::string& text) {
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string last_line(std::string_view text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  const std::string_view up_to_end = text.substr(0, end + 1);
  return std::string(up_to_end.substr(up_to_end.rfind('\n') + 1));
}

LaunchStatus status_of(const std::string& kind) {
  if (kind == "usage") return LaunchStatus::usage;
  return kind == "timeout" ? LaunchStatus::hung : LaunchStatus::failure;
}

}  // namespace

LocalRank::LocalRank(int rank, const Job& job, const LaunchOptions& options, int store_fd)
    : RankHandle(rank),
      verbose_(options.verbose),
      worker_(options.command, options.body, to_json(job).dump(), page_.fd(), store_fd,
              options.interrupt) {}

bool LocalRank::read() {
  const bool had_result = result_open_;
  read_result();
  read_output();
  const std::string activity = page_.summary();
  const bool news = activity != activity_ || had_result != result_open_;
  activity_ = activity;
  return news;
}

void LocalRank::read_result() {
  if (result_open_) result_open_ = read_available(worker_.result_fd(), answer_);
}

void LocalRank::read_output() {
  if (!output_open_) return;
  const std::size_t before = output_.size();
  output_open_ = read_available(worker_.output_fd(), output_);
  if (verbose_) std::fwrite(output_.data() + before, 1, output_.size() - before, stderr);
  if (output_.size() > kept_output) output_.erase(0, output_.size() - kept_output);
}

bool LocalRank::ended() {
  if (concluded_) return true;
  if (!worker_.ended()) return false;
  read_result();
  read_output();
  conclude();
  return true;
}

void LocalRank::kill() { worker_.kill(); }

// The third field of /proc/PID/stat, after the name in parentheses, is the state.
std::optional<std::string> LocalRank::stall_reason() const {
  std::ifstream file(fmt::format("/proc/{}/stat", worker_.pid()));
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  const bool stopped =
      name_end != std::string::npos && name_end + 2 < text.size() && text[name_end + 2] == 'T';
  if (!stopped) return std::nullopt;
  return "was stopped (SIGSTOP?)";
}

void LocalRank::conclude() {
  concluded_ = true;
  const json answer = json::parse(answer_, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_discarded()) {
    result_ = answered(answer);
    return;
  }
  cause_ = FailureCause::crashed;
  const std::string message =
      answer_.empty() || WIFSIGNALED(worker_.wait_status())
          ? description_of_end()
          : fmt::format("rank {} returned {} bytes that are not JSON", rank(), answer_.size());
  result_ = failed(LaunchStatus::failure, with_output(message));
}

LaunchResult LocalRank::answered(const json& answer) {
  if (!answer.is_object() || !answer.contains("ok")) {
    return failed(LaunchStatus::failure,
                  fmt::format("rank {} returned a result without \"ok\"", rank()));
  }
  if (answer.value("ok", false)) {
    LaunchResult launched;
    launched.status = LaunchStatus::ok;
    launched.result = answer.value("result", json());
    launched.conditions = reports::json_fields::read_as<reports::Conditions>(
        answer.value("conditions", json::object()), "worker: conditions");
    return launched;
  }
  const std::string kind = answer.value("kind", "failure");
  if (kind == "communication") cause_ = FailureCause::peer_lost;
  LaunchResult launched = failed(status_of(kind), answer.value("message", "no message"));
  const std::string action = answer.value("last_action", "");
  if (!action.empty()) launched.error.last_action = action;
  return launched;
}

std::string LocalRank::description_of_end() const {
  const int status = worker_.wait_status();
  if (!WIFSIGNALED(status)) {
    return fmt::format("rank {} exited without a result, exit status {}", rank(),
                       WEXITSTATUS(status));
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) return fmt::format("rank {} was killed (out of memory?)", rank());
  const char* name = sigabbrev_np(signal);
  return fmt::format("rank {} was terminated by signal {} (SIG{})", rank(), signal,
                     name ? name : "?");
}

std::string LocalRank::with_output(const std::string& message) const {
  const std::string line = last_line(output_);
  return line.empty() ? message : message + ": " + line;
}

}  // namespace stratagem::bench
