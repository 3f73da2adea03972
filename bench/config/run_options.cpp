#include "bench/config/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
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

std::string group_title(const Option& option, const Catalogue& catalogue) {
  return is_strategys_own(option) ? "Options of " + users_of(option, catalogue) : option.group;
}

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
  added->group(group_title(option, catalogue))->type_name("");
  if (is_boolean) {
    added->expected(0, 1);  // the flag alone turns it on
  }
}

void add_per_device_batch_size(CLI::App& app, RunOptions& options) {
  app.add_option_function<std::string>(
         "--per-device-batch-size",
         [&options](const std::string& text) { options.values[per_device_batch_size] = text; },
         "instead of --global-batch-size: samples for each of the job's devices")
      ->group("Work")
      ->type_name("");
}

void add_outputs(CLI::App& app, RunOptions& options) {
  app.add_option("--out", options.files.out,
                 "results as JSON, \"-\" for the standard output; without it only the table")
      ->group("Files")
      ->type_name("FILE");
  app.add_option("--trace", options.files.trace, "timelines for ui.perfetto.dev")
      ->group("Files")
      ->type_name("FILE");
  app.add_flag("--resume", options.files.resume,
               "keep the finished launches of an interrupted run; build, machine and environment "
               "must be the same")
      ->group("Files");
  app.add_flag("--anonymous", options.files.anonymous,
               "leave host, folders and environment variables out of the results")
      ->group("Files");
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
  throw std::invalid_argument(
      fmt::format("unexpected \"{}\": the values of an option are joined by commas", name));
}

std::vector<std::string> split_at_commas(const std::string& text, const std::string& where) {
  std::vector<std::string> parts;
  for (const std::string_view part : runtime::split(text, ',')) {
    if (parts.emplace_back(part).empty()) {
      throw std::invalid_argument(
          fmt::format("{}: value {} of \"{}\" is empty", where, parts.size(), text));
    }
  }
  return parts;
}

std::string flag_of(const std::string& name) {
  return name == per_device_batch_size ? "--per-device-batch-size" : find_option(name).flag;
}

// One way to give the batch; a lower layer's falls away with the other name.
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

}  // namespace

void add_row_options(CLI::App& app, RunOptions& options, const Catalogue& catalogue,
                     const std::function<bool(const Option&)>& left_out) {
  for (const Option& option : option_table()) {
    if (option.of_process || (left_out && left_out(option))) continue;
    if (option.is_switch) {
      add_switch(app, option, options, catalogue);
    } else {
      add_valued(app, option, options, catalogue);
    }
    if (option.name == global_batch_size) add_per_device_batch_size(app, options);
  }
  app.allow_extras();
  app.parse_complete_callback([&app] { refuse_unknown(app); });
}

void add_sources(CLI::App& app, RunOptions& options) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  app.add_option(
         "--preset", options.preset,
         fmt::format("values of the options that are not given: {}", fmt::join(names, ", ")))
      ->group("Files")
      ->type_name("");
  app.add_option("--config", options.config,
                 "JSON object of these options in snake_case; the command line wins")
      ->group("Files")
      ->type_name("FILE");
  app.add_flag("--quiet", options.files.quiet, "no progress")->group("Files");
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

std::string command_line_error(const CLI::ParseError& error) {
  const std::string text = runtime::first_line(error);
  constexpr std::string_view repeated = ": At Most 1 required but received ";
  if (const auto found = text.find(repeated); found != std::string::npos) {
    return fmt::format("{}: is given {} times; once is enough", text.substr(0, found),
                       text.substr(found + repeated.size()));
  }
  constexpr std::string_view unreadable = "Could not convert: ";
  const auto equals = text.find(" = ");
  if (text.starts_with(unreadable) && equals != std::string::npos) {
    return fmt::format("{}: \"{}\" is not a number that it can have",
                       text.substr(unreadable.size(), equals - unreadable.size()),
                       text.substr(equals + 3));
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return text;
  return fmt::format("unknown arguments{}; --help lists the options",
                     text.substr(text.rfind(": ")));
}

}  // namespace stratagem::bench
