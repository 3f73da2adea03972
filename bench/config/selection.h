// The user's selection, before it is a grid: the texts of each option and their origin.
//
// The command line wins over the config file, which wins over a preset.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stratagem::bench {

/// The output files of a run, and how it reports.
struct RunFiles {
  std::string out;    // empty: only the table; "-": JSON on the standard output
  std::string trace;  // empty: none
  bool resume = false;
  bool quiet = false;
  bool anonymous = false;  // results without host, folders and variables
};

enum class Origin { preset, config_file, command_line };

/// The values of one option, each in the command line's text.
struct Chosen {
  std::vector<std::string> texts;
  Origin origin = Origin::command_line;
  std::string where;  // opens messages: "--split-size", "grid.json: split_size"

  bool by_user() const { return origin != Origin::preset; }
};

struct Selection {
  std::map<std::string, Chosen> options;  // by snake_case name; per_device_batch_size among them
  RunFiles files;
};

/// The derived option's name: the global batch is this many samples for each of the job's devices.
inline constexpr const char* per_device_batch_size = "per_device_batch_size";

}  // namespace stratagem::bench
