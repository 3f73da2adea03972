// The config file: a JSON object of options under their snake_case names.
//
//   {"preset": "cpu", "strategy": ["single", "pipeline"], "split_size": [4, 8], "out": "r.json"}
//
// A value is one, or a list of them, which spans the grid; `cut` and `device_ids` hold lists
// themselves: one joined by + ("layer2+layer4"), several as a list of such texts.
#pragma once

#include <string>
#include <vector>

#include "bench/config/selection.h"

namespace stratagem::bench {

struct ConfigFile {
  Selection selection;
  std::string preset;  // empty: none
};

/// Throws std::system_error when the file cannot be read, std::invalid_argument, in one line that
/// names the file and the key or the position, when it does not hold what is described above.
ConfigFile read_config_file(const std::string& path);

/// The files under the key "plugin", one or a list of them. Throws as read_config_file does.
std::vector<std::string> plugins_in_config_file(const std::string& path);

}  // namespace stratagem::bench
