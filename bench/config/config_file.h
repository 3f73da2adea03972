// The config file: a JSON object of options under their snake_case names.
//
//   {"preset": "cpu", "strategy": ["single", "pipeline"], "split_size": [4, 8], "out": "r.json"}
//
// A key has one value or a list of values, which spans the grid. `cut` and `device_ids` hold lists:
// one is a text joined by + ("layer2+layer4"), several are a list of such texts.
#pragma once

#include <string>
#include <vector>

#include "bench/config/selection.h"

namespace stratagem::bench {

struct ConfigFile {
  Selection selection;
  std::string preset;  // empty: none
};

/// Throws std::system_error if the file cannot be read, and std::invalid_argument, in one line with
/// the file and the key or the position, if its content is not as described above.
ConfigFile read_config_file(const std::string& path);

/// Returns the texts under a key, one or a list. Throws like read_config_file().
std::vector<std::string> names_in_config_file(const std::string& path, const std::string& key);

}  // namespace stratagem::bench
