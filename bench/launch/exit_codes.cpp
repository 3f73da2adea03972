#include "bench/launch/exit_codes.h"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "bench/machine/signals.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::bench {

namespace {

int tell(const std::string& program, const std::exception& error, int code) {
  fmt::print(stderr, "{}: {}\n", program, runtime::first_line(error));
  return code;
}

}  // namespace

int run_main(const std::string& program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Interrupted& error) {
    return tell(program, error, exit_codes::interrupted);
  } catch (const std::invalid_argument& error) {
    return tell(program, error, exit_codes::usage);
  } catch (const std::system_error& error) {
    return tell(program, error, exit_codes::usage);
  } catch (const std::exception& error) {
    return tell(program, error, exit_codes::lost);
  }
}

}  // namespace stratagem::bench
