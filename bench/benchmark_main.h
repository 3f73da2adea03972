// The main function of the benchmark executables: Google Benchmark programs whose rows are measured
// in rounds, each launch in processes of its own, and then replayed.
#pragma once

#include <string>
#include <vector>

#include "bench/presets.h"

namespace stratagem::bench {

struct BenchmarkProgram {
  std::string name;
  std::string summary;
  /// Grids whose rows are measured together. Options on the command line override them.
  std::vector<OptionValues> grids;
};

/// Returns the exit code. Also serves as the worker that its own launches start.
int benchmark_main(int argc, char** argv, const BenchmarkProgram& program);

}  // namespace stratagem::bench
