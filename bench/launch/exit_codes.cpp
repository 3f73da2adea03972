#include "bench/launch/exit_codes.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "bench/machine/signals.h"
#include "strategies/runtime/explained.h"
#include "strategies/runtime/first_line.h"
#include "strategies/runtime/print_line.h"

namespace stratagem::bench {

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const Interrupted*>(&error) != nullptr) return exit_codes::interrupted;
  const bool wrong_input = dynamic_cast<const std::invalid_argument*>(&error) != nullptr ||
                           dynamic_cast<const std::system_error*>(&error) != nullptr;
  return wrong_input ? exit_codes::usage : exit_codes::lost;
}

void write_what_was_measured(const std::function<void()>& write, const std::string& left) {
  try {
    write();
  } catch (const std::system_error& error) {
    throw std::runtime_error(left.empty() ? error.what()
                                          : fmt::format("{}; {}", error.what(), left));
  }
}

int run_main(const std::string& program, const std::function<int()>& body) {
  // A write beyond RLIMIT_FSIZE then only fails, in this process and in its workers.
  ::signal(SIGXFSZ, SIG_IGN);
  int code = exit_codes::done;
  std::string failure;
  try {
    code = body();
  } catch (const std::exception& error) {
    failure = runtime::explained(runtime::first_line(error));
    code = exit_code_of(error);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    failure = "cannot write the standard output: its disk is full, or it is closed";
    if (code == exit_codes::done || code == exit_codes::usage) code = exit_codes::lost;
  }
  if (!failure.empty()) runtime::print_line(stderr, fmt::format("{}: {}", program, failure));
  return code;
}

}  // namespace stratagem::bench
