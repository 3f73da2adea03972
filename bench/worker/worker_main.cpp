#include "bench/worker/worker_main.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "bench/config/placement.h"
#include "bench/config/plugins.h"
#include "bench/launch/exit_codes.h"
#include "bench/worker/tasks.h"
#include "reports/json_fields.h"
#include "reports/write_all.h"
#include "strategies/distributed/library_environment.h"
#include "strategies/runtime/communication_error.h"
#include "strategies/runtime/device.h"
#include "strategies/runtime/explained.h"
#include "strategies/runtime/first_line.h"
#include "strategies/runtime/parse.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

/// Returns the number after `flag`. Throws std::invalid_argument.
int descriptor(int argc, const char* const* argv, std::string_view flag) {
  for (int index = 2; index + 1 < argc; ++index) {
    if (argv[index] != flag) continue;
    const int number = runtime::number_in<int>(argv[index + 1]).value_or(-1);
    if (number >= 0) return number;
  }
  throw std::invalid_argument(
      fmt::format("worker: {} is missing; workers are started by `run`", flag));
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "worker: cannot read the job");
    }
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

json refusal(const char* kind, const std::string& message, const runtime::ProgressPage& page) {
  return {{"ok", false},
          {"kind", kind},
          {"message", runtime::explained(runtime::first_line(message))},
          {"last_action", page.summary()}};
}

json refusal(const std::exception_ptr& failure, const runtime::ProgressPage& page) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::invalid_argument& error) {
    return refusal("usage", error.what(), page);
  } catch (const runtime::CommunicationError& error) {
    return refusal("communication", error.what(), page);
  } catch (const runtime::DeviceTimeout& error) {
    return refusal("timeout", error.what(), page);
  } catch (const std::exception& error) {
    return refusal("failure", error.what(), page);
  }
}

int exit_status(const json& answer) {
  if (answer.value("ok", false)) return exit_codes::done;
  return answer.value("kind", "") == "usage" ? exit_codes::usage : exit_codes::lost;
}

/// Writes the answer. If this fails, the controller is gone.
int give(const json& answer, int result_fd) {
  reports::write_all(result_fd, answer.dump(-1, ' ', false, json::error_handler_t::replace));
  return exit_status(answer);
}

[[noreturn]] void leave(int status) {
  std::fflush(nullptr);
  ::_exit(status);
}

/// Returns the environment variables that the libraries read for exchanges between ranks.
std::vector<std::pair<std::string, std::string>> environment_of(const Job& job) {
  const auto of_row = [](const auto& one) {
    if constexpr (requires { one.config; }) {
      const Config& config = one.config;
      return distributed::library_environment(
          config.interface == "auto" ? "" : config.interface,
          /*over_nccl=*/one.header.ranks > 1 && backend_of(config) == "nccl");
    } else {
      return distributed::library_environment("", /*over_nccl=*/false);
    }
  };
  return std::visit(of_row, job);
}

json answer(const std::vector<std::string>& arguments, const std::string& text,
            runtime::ProgressPage& page, int result_fd) {
  reports::Conditions conditions;
  // A work item that overran is left running: the answer is written before anything is freed.
  const TaskContext context{.activity = &page,
                            .conditions = &conditions,
                            .on_overrun = [&page, result_fd](const std::exception_ptr& failure) {
                              leave(give(refusal(failure, page), result_fd));
                            }};
  try {
    const Job job = job_from_json(json::parse(text));
    for (const auto& [name, value] : environment_of(job)) {
      ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    }
    load_plugins(arguments);
    json result = perform_task(job, context);
    return {{"ok", true},
            {"result", std::move(result)},
            {"conditions", json(reports::json_fields::json_of(conditions))}};
  } catch (const std::exception&) {
    return refusal(std::current_exception(), page);
  }
}

// The controller may have died before the request was made, in which case nobody reads the result.
void die_with_controller(int result_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "stratagem");  // instead of "exe", the started file
  pollfd reader{result_fd, 0, 0};
  if (::poll(&reader, 1, 0) > 0) ::_exit(exit_codes::lost);
}

}  // namespace

bool is_worker_call(int argc, const char* const* argv) {
  return argc >= 2 && std::string_view(argv[1]) == "worker";
}

void worker_main(int argc, const char* const* argv) {
  const int status = run_main("stratagem", [&] {
    const int job_fd = descriptor(argc, argv, "--job-fd");
    const int result_fd = descriptor(argc, argv, "--result-fd");
    die_with_controller(result_fd);
    // Gloo writes to connections whose other end may be gone: that must be an error of the call,
    // which the rank can report, and not the rank's end.
    ::signal(SIGPIPE, SIG_IGN);
    runtime::ProgressPage page(descriptor(argc, argv, "--activity-fd"));
    return give(answer({argv + 2, argv + argc}, read_all(job_fd), page, result_fd), result_fd);
  });
  leave(status);
}

int program_main(int argc, char** argv, const std::string& program,
                 const std::function<int(const std::vector<std::string>&)>& perform) {
  if (is_worker_call(argc, argv)) worker_main(argc, argv);
  return run_main(program, [&] {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    load_plugins(arguments);
    return perform(arguments);
  });
}

}  // namespace stratagem::bench
