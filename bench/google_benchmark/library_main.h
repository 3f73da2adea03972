// The main function of the benchmark executables whose rows Google Benchmark's library measures.
#pragma once

#include <string>

namespace stratagem::bench {

/// Returns the exit code of a program that registered its rows with the library. Refuses wrong
/// flags in one line; if no row matches the filter, the library prints it. `program` is the name of
/// the executable.
int library_main(int argc, char** argv, const std::string& program);

}  // namespace stratagem::bench
