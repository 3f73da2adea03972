#include "bench/launch.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "bench/machine.h"
#include "bench/worker_process.h"
#include "strategies/runtime/activity_board.h"

namespace stratagem::bench {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr auto poll_interval = std::chrono::milliseconds(200);
// After the result's end the worker has only to leave.
constexpr auto leave_limit = std::chrono::seconds(5);
constexpr std::size_t kept_output = 64 * 1024;

/// Appends what can be read; false at the end of the stream.
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
  const auto begin = text.find_last_of('\n', end);
  return std::string(text.substr(begin == std::string_view::npos ? 0 : begin + 1,
                                 end - (begin == std::string_view::npos ? 0 : begin + 1) + 1));
}

LaunchStatus status_of(const std::string& kind) {
  if (kind == "usage") return LaunchStatus::usage;
  return kind == "timeout" ? LaunchStatus::hung : LaunchStatus::failure;
}

/// What was received from one worker, and how its end is to be read.
class Conversation {
 public:
  Conversation(WorkerProcess& worker, const runtime::ActivityBoard& board,
               const LaunchOptions& options)
      : worker_(worker), board_(board), options_(options), last_news_(Clock::now()) {}

  LaunchResult run() {
    while (true) {
      wait_for_news();
      if (options_.interrupt != nullptr && options_.interrupt->raised()) {
        worker_.kill();
        return failed(LaunchStatus::interrupted, "interrupted");
      }
      if (worker_.ended()) {
        read_result();
        read_output();
        return concluded();
      }
      if (Clock::now() - last_news_ > limit()) return stopped();
      if (options_.on_wait) options_.on_wait();
    }
  }

 private:
  void wait_for_news() {
    std::array<pollfd, 3> waiting{
        {{result_open_ ? worker_.result_fd() : -1, POLLIN, 0},
         {output_open_ ? worker_.output_fd() : -1, POLLIN, 0},
         {options_.interrupt ? options_.interrupt->fd() : -1, POLLIN, 0}}};
    // With both streams at their end nothing announces the worker's: look more often.
    const auto patience =
        result_open_ || output_open_ ? poll_interval : std::chrono::milliseconds(1);
    ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
    const bool had_result = result_open_;
    read_result();
    read_output();
    const std::string activity = board_.summary();
    if (activity != activity_ || had_result != result_open_) {
      activity_ = activity;
      last_news_ = Clock::now();
    }
  }

  void read_result() {
    if (result_open_) result_open_ = read_available(worker_.result_fd(), answer_);
  }

  void read_output() {
    if (!output_open_) return;
    const std::size_t before = output_.size();
    output_open_ = read_available(worker_.output_fd(), output_);
    if (options_.verbose) {
      std::fwrite(output_.data() + before, 1, output_.size() - before, stderr);
    }
    if (output_.size() > kept_output) output_.erase(0, output_.size() - kept_output);
  }

  std::chrono::duration<double> limit() const {
    return result_open_ ? options_.limit : std::min(options_.limit, {leave_limit});
  }

  LaunchResult failed(LaunchStatus status, std::string message) const {
    LaunchResult launched;
    launched.status = status;
    launched.error = {.rank = 0,
                      .host = host_name(),
                      .last_action = board_.summary(),
                      .message = std::move(message)};
    return launched;
  }

  LaunchResult stopped() {
    const std::string action = board_.summary();
    worker_.kill();
    return failed(LaunchStatus::hung,
                  fmt::format("rank 0 hung: no result within {:g} s; last action {}",
                              options_.limit.count(), action.empty() ? "none" : action));
  }

  LaunchResult concluded() const {
    const json answer = json::parse(answer_, nullptr, /*allow_exceptions=*/false);
    if (!answer.is_discarded()) return answered(answer);
    const int status = worker_.wait_status();
    std::string message =
        answer_.empty() || WIFSIGNALED(status)
            ? description_of_end(status)
            : fmt::format("rank 0 left a result of {} bytes that is not JSON", answer_.size());
    return failed(LaunchStatus::failure, with_output(message));
  }

  LaunchResult answered(const json& answer) const {
    if (!answer.is_object() || !answer.contains("ok")) {
      return failed(LaunchStatus::failure, "rank 0 left a result without \"ok\"");
    }
    if (answer.value("ok", false)) {
      LaunchResult launched;
      launched.status = LaunchStatus::ok;
      launched.result = answer.value("result", json());
      return launched;
    }
    const std::string kind = answer.value("kind", "failure");
    LaunchResult launched = failed(status_of(kind), answer.value("message", "no message"));
    const std::string action = answer.value("last_action", "");
    if (!action.empty()) launched.error.last_action = action;
    return launched;
  }

  static std::string description_of_end(int status) {
    if (!WIFSIGNALED(status)) {
      return fmt::format("rank 0 left without a result, exit status {}", WEXITSTATUS(status));
    }
    const int signal = WTERMSIG(status);
    if (signal == SIGKILL) return "rank 0 was killed (out of memory?)";
    const char* name = sigabbrev_np(signal);
    return fmt::format("rank 0 was ended by signal {} (SIG{})", signal, name ? name : "?");
  }

  std::string with_output(const std::string& message) const {
    const std::string line = last_line(output_);
    return line.empty() ? message : message + ": " + line;
  }

  WorkerProcess& worker_;
  const runtime::ActivityBoard& board_;
  const LaunchOptions& options_;
  Clock::time_point last_news_;
  bool result_open_ = true;
  bool output_open_ = true;
  std::string answer_;
  std::string output_;
  std::string activity_;
};

}  // namespace

LaunchResult launch(const nlohmann::json& job, const LaunchOptions& options) {
  const runtime::ActivityBoard board;
  WorkerProcess worker(options.command, job.dump(), board.fd(), options.interrupt);
  return Conversation(worker, board, options).run();
}

}  // namespace stratagem::bench
