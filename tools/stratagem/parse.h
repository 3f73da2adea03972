// Parses arguments for every subcommand by CLI11: errors in one line, help on standard output.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {

/// Returns false after printing a requested help. Throws std::invalid_argument.
bool parse(CLI::App& app, const Arguments& arguments);

}  // namespace stratagem::tools
