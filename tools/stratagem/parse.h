// CLI11 as every subcommand uses it: errors in one line, help on standard output.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {

/// False when help was asked for, which is then printed. Throws std::invalid_argument.
bool parse(CLI::App& app, const Arguments& arguments);

}  // namespace stratagem::tools
