#include "bench/config/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "bench/config/config_file.h"
#include "bench/config/options.h"
#include "bench/config/presets.h"
#include "strategies/runtime/first_line.h"
#include "strategies/runtime/parse.h"

namespace stratagem::bench {
namespace {

constexpr const char* global_batch_size = "global_batch_size";

/// The options that most runs give; the help lists them first.
constexpr std::array common_options = {
    "strategy",          "model",           "devices",  "device",
    "global_batch_size", "split_size",      "schedule", "mesh",
    "optimizer",         "mixed_precision", "steps",    "repetitions"};
constexpr const char* common_group = "Common options";

bool is_common(const Option& option) {
  return std::ranges::find(common_options, option.name) != common_options.end();
}

std::string group_title(const Option& option, const Catalogue& catalogue) {
  if (is_common(option)) return common_group;
  return is_strategys_own(option) ? "Options of " + users_of(option, catalogue) : option.group;
}

/// Stands behind the option's flag in the help.
struct ValueHint {
  const char* operator()(bool Config::*) const { return "on|off"; }
  const char* operator()(std::int64_t Config::*) const { return "N"; }
  const char* operator()(double Config::*) const { return "X"; }
  const char* operator()(std::vector<std::int64_t> Config::*) const { return "N+N"; }
  const char* operator()(std::vector<std::string> Config::*) const { return "NAME+NAME"; }
  const char* operator()(const auto& /*text*/) const { return "NAME"; }
};

void add_switch(CLI::App& app, const Option& option, RunOptions& options,
                const Catalogue& catalogue) {
  Config turned;
  const bool standard = value_text(turned, option) == "on";
  app.add_flag_callback(
         option.flag,
         [&options, &option, standard] { options.values[option.name] = standard ? "off" : "on"; },
         help_text(option, catalogue))
      ->group(group_title(option, catalogue));
}

void add_valued(CLI::App& app, const Option& option, RunOptions& options,
                const Catalogue& catalogue) {
  const bool is_boolean = std::holds_alternative<bool Config::*>(option.member);
  CLI::Option* added = app.add_option_function<std::string>(
      option.flag,
      [&options, &option, is_boolean](const std::string& text) {
        options.values[option.name] = is_boolean && text.empty() ? "on" : text;
      },
      help_text(option, catalogue));
  added->group(group_title(option, catalogue))->type_name(std::visit(ValueHint(), option.member));
  if (is_boolean) {
    added->expected(0, 1);  // the flag without a value turns it on
  }
}

void add_per_device_batch_size(CLI::App& app, RunOptions& options) {
  app.add_option_function<std::string>(
         "--per-device-batch-size",
         [&options](const std::string& text) { options.values[per_device_batch_size] = text; },
         "number of samples of each device; give it or --global-batch-size")
      ->group(common_group)
      ->type_name("N");
}

void add_outputs(CLI::App& app, RunOptions& options) {
  app.add_option("--out", options.files.out,
                 "write the results to FILE as JSON; \"-\" is the standard output")
      ->group(common_group)
      ->type_name("FILE");
  app.add_option("--trace", options.files.trace, "write timelines to FILE for ui.perfetto.dev")
      ->group(file_group)
      ->type_name("FILE");
  app.add_flag("--resume", options.files.resume,
               "continue an interrupted run of the same --out FILE; build, machine and environment "
               "must be the same")
      ->group(common_group);
  app.add_flag("--anonymous", options.files.anonymous,
               "omit the host name, folders and environment variables from the results")
      ->group(file_group);
}

void refuse_unknown(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) return;
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const std::string name = unknown.front().substr(0, unknown.front().find('='));
  if (name.starts_with('-')) {
    throw std::invalid_argument(
        fmt::format("unknown option {}{}", name,
                    models::did_you_mean(name, flags, "; --help lists the options")));
  }
  throw std::invalid_argument(fmt::format(
      "unexpected argument \"{}\"; join several values of an option with commas", name));
}

std::vector<std::string> split_at_commas(const std::string& text, const std::string& where) {
  std::vector<std::string> parts;
  for (const std::string_view part : runtime::split(text, ',')) {
    if (text.empty()) throw std::invalid_argument(where + ": the value is empty; give one");
    if (parts.emplace_back(part).empty()) {
      throw std::invalid_argument(
          fmt::format("{}: value {} of \"{}\" is empty; join values with single commas", where,
                      parts.size(), text));
    }
  }
  return parts;
}

std::string flag_of(const std::string& name) {
  return name == per_device_batch_size ? "--per-device-batch-size" : find_option(name).flag;
}

// Allows one name of the batch; it overrides both names of a lower layer.
void refuse_two_batch_sizes(const std::map<std::string, Chosen>& options) {
  const auto global = options.find(global_batch_size);
  const auto each = options.find(per_device_batch_size);
  if (global != options.end() && each != options.end()) {
    throw std::invalid_argument(fmt::format("{} and {} exclude each other; give one of them",
                                            global->second.where, each->second.where));
  }
}

void fill(Selection& selection, const std::map<std::string, Chosen>& lower) {
  refuse_two_batch_sizes(lower);
  const bool has_batch =
      selection.options.count(global_batch_size) + selection.options.count(per_device_batch_size) >
      0;
  for (const auto& [name, chosen] : lower) {
    if (!has_batch || (name != global_batch_size && name != per_device_batch_size)) {
      selection.options.emplace(name, chosen);
    }
  }
}

std::map<std::string, Chosen> chosen_by(const OptionValues& values, Origin origin,
                                        const std::string& owner) {
  std::map<std::string, Chosen> chosen;
  for (const auto& [name, text] : values) {
    const std::string where = origin == Origin::command_line ? flag_of(name) : owner + ": " + name;
    chosen[name] = {split_at_commas(text, where), origin, where};
  }
  return chosen;
}

void fill_files(RunFiles& files, const RunFiles& lower) {
  files.out = files.out.empty() ? lower.out : files.out;
  files.trace = files.trace.empty() ? lower.trace : files.trace;
  files.resume = files.resume || lower.resume;
  files.quiet = files.quiet || lower.quiet;
  files.anonymous = files.anonymous || lower.anonymous;
}

bool is_tutorial_alone(const Selection& selection) {
  const auto protocol = selection.options.find("protocol");
  return protocol != selection.options.end() &&
         protocol->second.texts == std::vector<std::string>{"tutorial"};
}

// The functions below translate one of the library's messages each, and return nothing for another.

std::optional<std::string> repeated_option(const std::string& text) {
  constexpr std::string_view repeated = ": At Most 1 required but received ";
  const auto found = text.find(repeated);
  if (found == std::string::npos) return std::nullopt;
  return fmt::format("{}: given {} times; give it once", text.substr(0, found),
                     text.substr(found + repeated.size()));
}

std::optional<std::string> unreadable_number(const std::string& text) {
  constexpr std::string_view unreadable = "Could not convert: ";
  const auto equals = text.find(" = ");
  if (!text.starts_with(unreadable) || equals == std::string::npos) return std::nullopt;
  return fmt::format("{}: \"{}\" is not a valid number",
                     text.substr(unreadable.size(), equals - unreadable.size()),
                     text.substr(equals + 3));
}

std::optional<std::string> missing_value(const std::string& text) {
  constexpr std::string_view missing = ": 1 required ";
  const auto found = text.find(missing);
  if (found == std::string::npos) return std::nullopt;
  const std::string flag = text.substr(0, found);
  const auto type = found + missing.size();
  return fmt::format("{}: the value is missing; expected {} {}", flag, flag,
                     text.substr(type, text.find(' ', type) - type));
}

std::optional<std::string> value_out_of_range(const std::string& text) {
  constexpr std::string_view outside = ": Value ";
  constexpr std::string_view of = " not in range ";
  constexpr std::size_t most_digits = 20;  // the library prints a range without an end in full
  const auto value = text.find(outside);
  const auto end = text.rfind(of);
  if (value == std::string::npos || end == std::string::npos) return std::nullopt;
  std::string range = text.substr(end + of.size());
  const auto to = range.find(" to ");
  if (to != std::string::npos && range.size() - to > most_digits) {
    range = range.starts_with("0.0") ? "more than 0" : range.substr(0, to) + " or more";
  }
  const auto start = value + outside.size();
  return fmt::format("{}: {} is out of range; expected {}", text.substr(0, value),
                     text.substr(start, end - start), range);
}

std::optional<std::string> unknown_value(const std::string& text) {
  constexpr std::string_view of = " not in {";
  const auto flag = text.find(": ");
  const auto end = text.rfind(of);
  if (flag == std::string::npos || end == std::string::npos) return std::nullopt;
  const std::string choices = text.substr(end + of.size(), text.find('}', end) - end - of.size());
  return fmt::format("{}: unknown value \"{}\"; choices: {}", text.substr(0, flag),
                     text.substr(flag + 2, end - flag - 2),
                     fmt::join(runtime::split(choices, ','), ", "));
}

}  // namespace

void add_row_options(CLI::App& app, RunOptions& options, const Catalogue& catalogue,
                     const std::function<bool(const Option&)>& left_out) {
  const auto add = [&](const Option& option) {
    if (option.is_switch) {
      add_switch(app, option, options, catalogue);
    } else {
      add_valued(app, option, options, catalogue);
    }
    if (option.name == global_batch_size) add_per_device_batch_size(app, options);
  };
  for (const bool common : {true, false}) {  // the help has the groups in this order
    for (const Option& option : option_table()) {
      const bool is_offered = !option.of_process && !(left_out && left_out(option));
      if (is_offered && is_common(option) == common) add(option);
    }
  }
  app.get_help_ptr()->group(common_group)->description("print this page");
  app.description(app.get_description() +
                  "\nBrackets hold the default of an option, and parentheses what uses it.");
  app.allow_extras();
  app.parse_complete_callback([&app] { refuse_unknown(app); });
}

void add_sources(CLI::App& app, RunOptions& options) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  app.add_option("--preset", options.preset,
                 fmt::format("take the options that you do not give from a preset: {}",
                             fmt::join(names, ", ")))
      ->group(common_group)
      ->type_name("NAME");
  app.add_option("--config", options.config,
                 "read options from a JSON object with snake_case keys; the command line takes "
                 "precedence")
      ->group(file_group)
      ->type_name("FILE");
  app.add_flag("--quiet", options.files.quiet, "print no progress")->group(file_group);
}

void add_run_options(CLI::App& app, RunOptions& options, const Catalogue& catalogue) {
  add_row_options(app, options, catalogue);
  add_sources(app, options);
  add_outputs(app, options);
}

Selection select(const RunOptions& options) {
  Selection selection;
  selection.files = options.files;
  fill(selection,
       chosen_by({options.values.begin(), options.values.end()}, Origin::command_line, ""));
  std::string preset = options.preset;
  if (!options.config.empty()) {
    const ConfigFile file = read_config_file(options.config);
    fill(selection, file.selection.options);
    fill_files(selection.files, file.selection.files);
    preset = preset.empty() ? file.preset : preset;
  }
  if (!preset.empty()) {
    fill(selection, chosen_by(find_preset(preset).values, Origin::preset, "preset " + preset));
  }
  if (is_tutorial_alone(selection)) {
    fill(selection,
         chosen_by(tutorial_protocol_values(), Origin::preset, "the tutorial's protocol"));
  }
  return selection;
}

Selection select(const RunOptions& options, const Preset* preset) {
  Selection selection;
  selection.files = options.files;
  fill(selection,
       chosen_by({options.values.begin(), options.values.end()}, Origin::command_line, ""));
  if (preset != nullptr) {
    fill(selection, chosen_by(preset->values, Origin::preset, "preset " + preset->name));
  }
  return selection;
}

void require_values(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const auto equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string::npos) continue;
    const std::string flag = argument.substr(0, equals);
    const std::string value = argument.substr(equals + 1);
    if (value.empty()) {
      throw std::invalid_argument(fmt::format("{}: the value is empty; give one", flag));
    }
    const CLI::Option* option = app.get_option_no_throw(flag);
    const bool is_switch = option != nullptr && option->get_items_expected_max() == 0;
    if (!is_switch || value == "true" || value == "false") continue;
    throw std::invalid_argument(fmt::format(
        "{}: unknown value \"{}\"; a switch takes no value, or true or false", flag, value));
  }
}

std::string command_line_error(const CLI::ParseError& error) {
  const std::string text = runtime::first_line(error);
  for (const auto translate :
       {repeated_option, unreadable_number, missing_value, value_out_of_range, unknown_value}) {
    if (const auto line = translate(text)) return *line;
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return text + "; --help shows the usage";
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return text;
  const std::string first = text.substr(text.rfind(' ') + 1);  // the library reverses the arguments
  return first.starts_with('-')
             ? fmt::format("unknown option {}; --help lists the options", first)
             : fmt::format("unexpected argument \"{}\"; --help lists the options", first);
}

}  // namespace stratagem::bench
