// stratagem report: charts and report.html of a results file, by the Python package.
#include "tools/stratagem/python.h"
#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {

int report(const Arguments& arguments) {
  Arguments words = {"report"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become_python(words);
}

}  // namespace stratagem::tools
