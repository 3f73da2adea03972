// The options of a row: one table that the command line, the config file, the grid, the row's
// name, the results and the help all read. An option is a member of Config or, where strategies
// read it, of StrategyOptions (strategies/options.h), one line in option_table.cpp, and its reader.
//
// A value's text is the command line's: on and off for booleans, `+` between the members of a list
// ("layer2+layer4"); commas separate the values of a grid and never stand in a value.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "bench/config/used_when.h"
#include "models/registry/named_entries.h"
#include "reports/record.h"
#include "strategies/runtime/device.h"

namespace stratagem::bench {

/// Where the choices of a text option come from when it does not list them.
enum class Choices { any_text, strategies, models, schedules };

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool high_excluded = false;
};

inline constexpr Bounds positive_count = {1};
/// Bounds a size of tensors, so that the product of two sizes, in bytes, fits 64 bits.
inline constexpr double most_numbers = 1'000'000'000;
inline constexpr Bounds more_than_zero = {.low = 0, .low_excluded = true};
inline constexpr Bounds zero_or_more = {0};
inline constexpr double most_devices = runtime::most_devices;

using Member =
    std::variant<bool Config::*, std::int64_t Config::*, double Config::*, std::string Config::*,
                 std::vector<std::string> Config::*, std::vector<std::int64_t> Config::*>;

/// States if a training that continues from a checkpoint may change the option.
enum class AtResume {
  undecided,  // refused like must_match; a test finds it
  must_match,
  may_change,
};

struct Option {
  std::string name;       // snake_case: config file, results
  std::string flag = {};  // the table fills it in where it is the name in kebab-case
  Member member;
  std::string group = {};  // in the help; filled in by the table
  UsedWhen used_when = used_when::always;
  std::string meaning;    // without unit and default
  std::string unit = {};  // empty for none
  Bounds bounds = {};
  Choices choices = Choices::any_text;
  std::vector<std::string> listed = {};  // its choices
  bool is_switch = false;                // a flag without a value that turns the default round
  bool in_row_name = true;
  bool of_process = false;                   // the same for all rows, so no axis of a grid
  std::string row_name_key = {};             // where it differs from the name: "batch"
  AtResume at_resume = AtResume::undecided;  // a whole group's is filled in by the table
};

/// In the order of the help, the results and the row names.
std::span<const Option> option_table();

/// The part of the table that says how strategies cut, replicate and share their work.
std::vector<Option> options_of_strategies();

/// By snake_case name; throws std::invalid_argument with the nearest one.
const Option& find_option(std::string_view name);
/// Returns "--split-size" for "split_size".
std::string kebab_flag(std::string name);

/// The text's value. Throws std::invalid_argument in one line that begins with `where` and says
/// what would be right; strategies, models and schedules are checked when there is a catalogue.
void set_value(Config& config, const Option& option, std::string_view text,
               const std::string& where, const Catalogue* catalogue);

/// The value as set_value reads it; empty for an empty list.
std::string value_text(const Config& config, const Option& option);

/// The text of a JSON value of the option's type: true, 12, 0.5, "gpipe", ["layer2", "layer4"].
/// Throws std::invalid_argument that begins with `where` for any other type.
std::string text_from_json(const Option& option, const nlohmann::json& value,
                           const std::string& where);

bool is_default(const Config& config, const Option& option);
void reset_to_default(Config& config, const Option& option);

/// Whether a row of this strategy, model and device reads the option.
bool is_used(const Option& option, const Config& config, const Catalogue& catalogue);

/// Returns true if the help shows the option under the strategies that list it.
inline bool is_strategys_own(const Option& option) {
  return option.used_when.of_strategies && !option.used_when.in_general_help;
}

/// Who reads it, for messages and help: "pipeline", "--device cuda"; empty for all.
std::string users_of(const Option& option, const Catalogue& catalogue);
/// With what rows of theirs must have besides: "tensor_parallel with sharded layers".
std::string users_and_conditions(const Option& option, const Catalogue& catalogue);

/// "size of a micro-batch, in samples [12]": meaning, unit, choices, default, and the kind of rows
/// that read it. A strategy's own option stands under the strategy instead.
std::string help_text(const Option& option, const Catalogue& catalogue);

/// Every field under its snake_case name; lists as texts ("layer2+layer4").
nlohmann::json to_json(const Config& config);

/// Absent keys keep their default. Throws std::invalid_argument naming an unknown key, or a key
/// whose value has the wrong type or is out of range, and what would be right.
Config config_from_json(const nlohmann::json& value);

/// Every option for the record; null where the row does not use it.
reports::Values record_values(const Config& config, const Catalogue& catalogue);

}  // namespace stratagem::bench
