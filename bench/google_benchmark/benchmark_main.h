// The main function of the benchmark executables: Google Benchmark programs whose rows are measured
// in rounds, each launch in processes of its own, and then replayed.
#pragma once

#include <string>
#include <vector>

#include "bench/config/presets.h"

namespace stratagem::bench {

struct BenchmarkProgram {
  std::string name;  // name of its file in bench/programs/
  /// The grids whose rows are measured together. Options on the command line override them. A grid
  /// without a strategy has all registered ones that can train its models on its devices.
  std::vector<OptionValues> grids;
};

/// Returns the exit code. Also serves as the worker that its own launches start.
int benchmark_main(int argc, char** argv, const BenchmarkProgram& program);

}  // namespace stratagem::bench
