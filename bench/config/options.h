// Reads and writes the options of a row: values as texts and JSON, who uses an option, its help.
// An option is a member of Config (config.h) or, where strategies read it, of StrategyOptions
// (strategies/options.h), its words in the table beside the members, and its reader.
//
// A value's text is the command line's: on and off for booleans, `+` between the members of a list
// ("layer2+layer4"); commas separate the values of a grid and never stand in a value.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "bench/config/used_when.h"
#include "models/registry/named_entries.h"
#include "reports/record.h"

namespace stratagem::bench {

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
  return condition(option.used_when).of_strategies && !condition(option.used_when).in_general_help;
}

/// Who reads it, for messages and help: "pipeline", "--device cuda"; empty for all.
std::string users_of(const Option& option, const Catalogue& catalogue);
/// With what rows of theirs must have besides: "tensor_parallel with sharded layers".
std::string users_and_conditions(const Option& option, const Catalogue& catalogue);

/// "size of a micro-batch, in samples [12]": meaning, unit, choices, default, and the kind of rows
/// that read it. A strategy's own option stands under the strategy instead.
std::string help_text(const Option& option, const Catalogue& catalogue);

nlohmann::json to_json(const Config& config);
/// The same without the options that only decide which launches are made when.
nlohmann::json launch_options(const Config& config);

/// Absent keys keep their default. Throws std::invalid_argument naming an unknown key, or a key
/// whose value has the wrong type or is out of range, and what would be right.
Config config_from_json(const nlohmann::json& value);

/// Returns true if only rows that agree in the option do the same work.
inline bool is_of_work(const Option& option) {
  return option.of_work || option.at_resume == strategies::AtResume::must_match;
}

/// A list as its text ("layer2+layer4").
reports::Value value_of(const Config& config, const Option& option);
/// Every option under its snake_case name; lists as texts ("layer2+layer4").
reports::Values values_of(const Config& config);
/// Every option for the record; null where the row does not use it, and for an empty list.
reports::Values record_values(const Config& config, const Catalogue& catalogue);

}  // namespace stratagem::bench
