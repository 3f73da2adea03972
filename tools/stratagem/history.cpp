// stratagem history: results over time, their trend and where it changed, by the Python package.
#include "tools/stratagem/python.h"
#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {

int history(const Arguments& arguments) { become_python("history", arguments); }

}  // namespace stratagem::tools
