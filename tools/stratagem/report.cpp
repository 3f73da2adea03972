// stratagem report: charts and report.html of a results file, by the Python package.
#include "tools/stratagem/python.h"
#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {

int report(const Arguments& arguments) { become_python("report", arguments); }

}  // namespace stratagem::tools
