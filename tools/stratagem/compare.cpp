// stratagem compare: whether one build or results file is slower than another, by the Python
// package.
#include "tools/stratagem/python.h"
#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {

int compare(const Arguments& arguments) { become_python("compare", arguments); }

}  // namespace stratagem::tools
