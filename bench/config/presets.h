// Presets: named sets of options that fill what the command line and the config file leave open.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stratagem::bench {

using OptionValues = std::vector<std::pair<std::string, std::string>>;  // name, command-line text

struct Preset {
  std::string name;
  std::string summary;
  OptionValues values;
};

std::span<const Preset> presets();

/// Throws std::invalid_argument with the choices and the nearest one.
const Preset& find_preset(std::string_view name);

/// Returns the values that --protocol tutorial implies for options that are not given.
const OptionValues& tutorial_protocol_values();

}  // namespace stratagem::bench
