#include "bench/launch/exit_codes.h"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "bench/machine/signals.h"
#include "strategies/runtime/explained.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::bench {

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const Interrupted*>(&error) != nullptr) return exit_codes::interrupted;
  const bool wrong_input = dynamic_cast<const std::invalid_argument*>(&error) != nullptr ||
                           dynamic_cast<const std::system_error*>(&error) != nullptr;
  return wrong_input ? exit_codes::usage : exit_codes::lost;
}

void write_what_was_measured(const std::function<void()>& write) {
  try {
    write();
  } catch (const std::system_error& error) {
    throw std::runtime_error(error.what());
  }
}

int run_main(const std::string& program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, runtime::explained(runtime::first_line(error)));
    return exit_code_of(error);
  }
}

}  // namespace stratagem::bench
