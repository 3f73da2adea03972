#include "bench/guarded_main.h"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "bench/measure.h"

namespace stratagem::bench {

namespace {

int tell(const std::string& program, const std::exception& error, int code) {
  fmt::print(stderr, "{}: {}\n", program, first_line(error.what()));
  return code;
}

}  // namespace

std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

int guarded_main(const std::string& program, const std::function<int()>& body) {
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
