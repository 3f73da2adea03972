#include "bench/config/row_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "bench/config/options.h"

namespace stratagem::bench {
namespace {

constexpr std::array<std::string_view, 8> leading = {
    "strategy",   "model",           "devices",    "global_batch_size",
    "image_size", "sequence_length", "split_size", "schedule"};
constexpr std::string_view trailing = "cores_per_device";

std::string part(const Config& config, const Option& option) {
  if (const auto* member = std::get_if<bool Config::*>(&option.member)) {
    return (config.**member ? "/" : "/no_") + option.name;
  }
  std::string value = value_text(config, option);
  std::ranges::replace(value, '/', '+');  // of a mesh: the parts of a name are told apart by it
  return fmt::format("/{}:{}", option.row_name_key.empty() ? option.name : option.row_name_key,
                     value);
}

}  // namespace

std::string row_name(const Config& config, const Catalogue& catalogue) {
  std::string name = config.strategy + "/" + config.model;
  for (const std::string_view key : leading) {
    const Option& option = find_option(key);
    if (key != "strategy" && key != "model" && is_used(option, config, catalogue)) {
      name += part(config, option);
    }
  }
  const auto is_named = [&](const Option& option) {
    return option.in_row_name && is_used(option, config, catalogue) && !is_default(config, option);
  };
  for (const Option& option : option_table()) {
    const bool elsewhere =
        option.name == trailing || std::ranges::find(leading, option.name) != leading.end();
    if (!elsewhere && is_named(option)) name += part(config, option);
  }
  if (const Option& cores = find_option(trailing); is_named(cores)) name += part(config, cores);
  return name;
}

}  // namespace stratagem::bench
