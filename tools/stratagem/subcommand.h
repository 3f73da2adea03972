// The subcommands of `stratagem`. Each has a file of its own and returns an exit code
// (bench/launch/exit_codes.h); wrong arguments throw std::invalid_argument with one line.
//
// Two programs perform them. `stratagem` has no LibTorch, so it starts at once. `stratagem_torch`,
// which lies beside it, has everything; `stratagem` becomes that program if a call needs models,
// strategies or plug-ins.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stratagem::tools {

/// The words after the subcommand's name.
using Arguments = std::vector<std::string>;

using Performers = std::map<std::string, int (*)(const Arguments& arguments)>;

/// Performs the request of the arguments, --help and --version too. `performers` has every
/// subcommand. Throws std::invalid_argument if the subcommand is missing or unknown.
int dispatch(const Arguments& arguments, const Performers& performers);

/// Returns whether `simulate` has to measure the costs.
bool is_calibrated(const Arguments& arguments);

// Without LibTorch:
int simulate(const Arguments& arguments);
int report(const Arguments& arguments);
int compare(const Arguments& arguments);
int history(const Arguments& arguments);
int schema(const Arguments& arguments);

// With it:
int list(const Arguments& arguments);
int run(const Arguments& arguments);
int train(const Arguments& arguments);
int verify(const Arguments& arguments);
int simulate_calibrated(const Arguments& arguments);
int calibrate(const Arguments& arguments);
int doctor(const Arguments& arguments);
int export_workload(const Arguments& arguments);
int prove(const Arguments& arguments);

}  // namespace stratagem::tools
