#include "tools/stratagem/parse.h"

#include <fmt/format.h>

#include <stdexcept>

#include "bench/guarded_main.h"

namespace stratagem::tools {

bool parse(CLI::App& app, const Arguments& arguments) {
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));
    return true;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(
        fmt::format("{}: {}", app.get_name(), bench::first_line(error.what())));
  }
}

}  // namespace stratagem::tools
