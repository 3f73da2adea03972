#include "tools/stratagem/parse.h"

#include <fmt/format.h>

#include <stdexcept>

#include "bench/config/plugins.h"
#include "bench/config/run_options.h"
#include "bench/machine/help_page.h"

namespace stratagem::tools {

bool parse(CLI::App& app, const Arguments& arguments) {
  bench::add_plugin_option(app);
  app.get_help_ptr()->description("print this page");
  bench::require_values(app, arguments);
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));
    return true;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", bench::help_page(app));
    return false;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(bench::command_line_error(error));
  }
}

}  // namespace stratagem::tools
