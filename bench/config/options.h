// Reads and writes the options of a row: values as texts and JSON, rows that use an option, its
// help. An option is a member of Config (config.h) or, if strategies read it, of StrategyOptions
// (strategies/options.h), with its texts in the table beside the members, and its reader.
//
// A value's text is the command line's: on and off for booleans, `+` between the members of a list
// ("layer2+layer4"); commas separate the values of a grid and are never part of a value.
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

/// Finds an option by snake_case name; throws std::invalid_argument with the nearest one.
const Option& find_option(std::string_view name);
/// Returns "--split-size" for "split_size".
std::string kebab_flag(std::string name);

/// Sets the value from its text. Throws std::invalid_argument in one line that begins with `where`
/// and names what would be right; checks strategies, models and schedules if there is a catalogue.
void set_value(Config& config, const Option& option, std::string_view text,
               const std::string& where, const Catalogue* catalogue);

/// Returns the value as set_value() reads it; empty for an empty list.
std::string value_text(const Config& config, const Option& option);

/// Returns the text of a JSON value of the option's type: true, 12, 0.5, "gpipe", ["layer2"].
/// Throws std::invalid_argument that begins with `where` for any other type.
std::string text_from_json(const Option& option, const nlohmann::json& value,
                           const std::string& where);

bool is_default(const Config& config, const Option& option);
void reset_to_default(Config& config, const Option& option);

/// Returns whether a row of this strategy, model and device reads the option.
bool is_used(const Option& option, const Config& config, const Catalogue& catalogue);

/// Returns true if the help shows the option under the strategies that list it.
inline bool is_strategys_own(const Option& option) {
  return condition(option.used_when).of_strategies && !condition(option.used_when).in_general_help;
}

/// Names the rows that read it: "pipeline", "--device cuda"; empty for all.
std::string users_of(const Option& option, const Catalogue& catalogue);
/// Adds what those rows need besides: "tensor_parallel with sharded layers".
std::string users_and_conditions(const Option& option, const Catalogue& catalogue);

/// Returns "order of launches: random, block": the choices stand before the first semicolon. A
/// meaning that contains them all is returned as it is.
std::string with_choices(std::string meaning, const std::vector<std::string>& choices);

/// Returns "size of a micro-batch, in samples [12]": meaning, unit, choices, default, and the rows
/// that read it. A strategy's own option is listed under the strategy instead.
std::string help_text(const Option& option, const Catalogue& catalogue);

nlohmann::json to_json(const Config& config);
/// Returns to_json() without the options that only decide which launches are made when.
nlohmann::json launch_options(const Config& config);

/// Keeps the default of absent keys. Throws std::invalid_argument naming an unknown key, or a key
/// whose value has the wrong type or is out of range, and what would be right.
Config config_from_json(const nlohmann::json& value);

/// Returns true if only rows that agree in the option do the same work.
inline bool is_of_work(const Option& option) {
  return option.of_work || option.at_resume == strategies::AtResume::must_match;
}

/// Returns the value; a list as its text ("layer2+layer4").
reports::Value value_of(const Config& config, const Option& option);
/// Returns every option under its snake_case name; lists as texts ("layer2+layer4").
reports::Values values_of(const Config& config);
/// Returns every option for the record; null if the row does not use it, or for an empty list.
reports::Values record_values(const Config& config, const Catalogue& catalogue);

}  // namespace stratagem::bench
