// The subcommands of `stratagem`. Each stands in a file of its own and returns the exit code of the
// contract; wrong arguments throw std::invalid_argument with one line.
#pragma once

#include <string>
#include <vector>

namespace stratagem::tools {

/// What stands behind the subcommand's name.
using Arguments = std::vector<std::string>;

struct Subcommand {
  std::string name;
  std::string summary;
  int (*perform)(const Arguments& arguments);
};

int list(const Arguments& arguments);
int run(const Arguments& arguments);
int train(const Arguments& arguments);
int verify(const Arguments& arguments);
int simulate(const Arguments& arguments);
int calibrate(const Arguments& arguments);
int doctor(const Arguments& arguments);
int report(const Arguments& arguments);
int compare(const Arguments& arguments);
int history(const Arguments& arguments);
int schema(const Arguments& arguments);

}  // namespace stratagem::tools
