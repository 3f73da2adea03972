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
/// The parts that a workload's name always has. Files of earlier versions have only these.
constexpr std::array<std::string_view, 11> always_in_workload = {
    "dtype",     "device",   "image_size", "sequence_length", "data", "loss",
    "optimizer", "protocol", "inputs",     "memory_format",   "tf32"};
constexpr std::string_view trailing = "cores_per_device";

std::string part(const Config& config, const Option& option) {
  if (const auto* member = std::get_if<bool Config::*>(&option.member)) {
    return (config.**member ? "/" : "/no_") + option.name;
  }
  std::string value = value_text(config, option);
  std::ranges::replace(value, '/', '+');  // a mesh has '/', which separates a name's parts
  return fmt::format("/{}:{}", option.row_name_key.empty() ? option.name : option.row_name_key,
                     value);
}

std::string work_part(const Config& config, const Option& option) {
  return std::visit(
      [&](const auto& value) -> std::string {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::monostate>) {
          return "";
        } else {
          return fmt::format("/{}:{}", option.name, value);
        }
      },
      value_of(config, option));
}

/// Returns the model's name; a file's without its folders, since "/" separates the parts of a name.
std::string model_part(const Config& config) {
  const auto folder = config.model.rfind('/');
  if (folder == std::string::npos) return config.model;
  return config.model.substr(0, config.model.find(':') + 1) + config.model.substr(folder + 1);
}

}  // namespace

std::string row_name(const Config& config, const Catalogue& catalogue) {
  std::string name = config.strategy + "/" + model_part(config);
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

std::string workload_name(const Config& config, const Catalogue& catalogue) {
  std::string name = fmt::format("{}/batch:{}", model_part(config), config.global_batch_size);
  for (const std::string_view key : always_in_workload) {
    const Option& option = find_option(key);
    if (is_used(option, config, catalogue)) name += work_part(config, option);
  }
  for (const Option& option : option_table()) {
    const bool has_part =
        option.name == "model" || option.name == "global_batch_size" ||
        std::ranges::find(always_in_workload, option.name) != always_in_workload.end();
    if (!has_part && is_of_work(option) && is_used(option, config, catalogue) &&
        !is_default(config, option)) {
      name += work_part(config, option);
    }
  }
  return name;
}

}  // namespace stratagem::bench
