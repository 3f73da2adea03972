#include "bench/config/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "bench/config/config_file.h"
#include "bench/config/run_options.h"
#include "models/datasets/registry.h"
#include "models/registry/named_entries.h"
#include "models/registry/registry.h"
#include "reports/build_information.h"
#include "reports/file_reader.h"
#include "strategies/registry.h"
#include "strategies/runtime/content_hash.h"
#include "strategies/runtime/parse.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/schedule_file.h"

namespace stratagem::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view plugin_flag = "--plugin";
constexpr std::string_view script_prefix = "script:";  // of a model, models::ModelFormat

std::vector<Plugin>& plugins() {
  static std::vector<Plugin> loaded;
  return loaded;
}

[[noreturn]] void refuse(const std::string& file, const std::string& reason) {
  throw std::invalid_argument(fmt::format("{} {}: {}", plugin_flag, file, reason));
}

/// Returns the value of each `option VALUE` or `option=VALUE`, up to a `--`; `others`, if not null,
/// receives the remaining arguments.
std::vector<std::string> values_of(std::string_view option,
                                   const std::vector<std::string>& arguments,
                                   std::vector<std::string>* others = nullptr) {
  std::vector<std::string> values;
  const auto end = std::ranges::find(arguments, "--");
  auto argument = arguments.begin();
  for (; argument != end; ++argument) {
    if (*argument == option && argument + 1 != end) {
      values.push_back(*++argument);
    } else if (argument->starts_with(fmt::format("{}=", option))) {
      values.push_back(argument->substr(option.size() + 1));
    } else if (others != nullptr) {
      others->push_back(*argument);
    }
  }
  if (others != nullptr) others->insert(others->end(), end, arguments.end());
  return values;
}

/// Returns what the file was built against; empty if it is not a plug-in. Reads the file's bytes,
/// because loading the file would run its code.
std::string interface_of(std::string_view content) {
  const std::string mark = reports::plugin_interface_mark();
  const auto found = content.find(mark);
  if (found == std::string_view::npos) return "";
  const std::string_view rest = content.substr(found + mark.size());
  return std::string(rest.substr(0, rest.find('\0')));
}

void require_interface(const std::string& file, const std::string& content) {
  const std::string built = interface_of(content);
  const std::string own = reports::build_information().plugin_interface;
  if (built.empty()) {
    refuse(
        file,
        "not a plug-in; expected a library made by stratagem_plugin() (docs/reference/plugins.md)");
  }
  if (built != own) {
    refuse(file, fmt::format("built for {}, but this is {}; build it against this installation",
                             built, own));
  }
}

/// Returns "undefined symbol: NAME" for "FILE: undefined symbol: NAME".
std::string loader_message(const std::string& path) {
  const char* text = dlerror();
  const std::string message = text == nullptr ? "unknown error" : text;
  const std::string lead = path + ": ";
  return message.starts_with(lead) ? message.substr(lead.size()) : message;
}

std::size_t entry_count() {
  return models::model_names().size() + datasets::dataset_names().size() +
         schedules::schedule_names().size() + strategies::strategy_names().size();
}

std::string identity_of(const fs::path& path, const std::string& content) {
  return fmt::format("{}@{:016x}", path.filename().string(), runtime::content_hash(content));
}

/// A model's file. Row names have its name without folders, so no two files may have one name.
Plugin load_script(const std::string& text) {
  const std::string file = text.substr(script_prefix.size());
  const fs::path name = fs::path(file).filename();
  if (name.empty()) {
    throw std::invalid_argument(fmt::format("--model \"{}\": expected script:FILE", text));
  }
  for (const Plugin& other : plugins()) {
    if (!other.path.starts_with(script_prefix) || fs::path(other.path).filename() != name) continue;
    throw std::invalid_argument(
        fmt::format("--model {}: {} has the same file name; rename one", text, other.path));
  }
  const std::string content = reports::read_file(file, "a TorchScript file");
  const std::string format(script_prefix.substr(0, script_prefix.size() - 1));
  models::ModelEntry::registry().add(models::ModelFormat::registry().find(format).load(file));
  return {.path = text, .identity = identity_of(name, content)};
}

Plugin load_order(const std::string& text) {
  const std::string file = text.substr(schedules::order_prefix.size());
  if (file.empty()) {
    throw std::invalid_argument(fmt::format("--schedule \"{}\": expected csv:FILE", text));
  }
  const std::string content = reports::read_file(file, "a schedule, one line for each device");
  schedules::ScheduleEntry::registry().add(schedules::read_schedule(text, content));
  return {.path = text, .identity = identity_of(file, content)};
}

Plugin load(const std::string& file) {
  if (file.starts_with(script_prefix)) return load_script(file);
  if (file.starts_with(schedules::order_prefix)) return load_order(file);
  const std::string content = reports::read_file(file, "a library made by stratagem_plugin()");
  require_interface(file, content);
  const fs::path path = fs::absolute(file);
  const std::size_t entries = entry_count();
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const std::string message = loader_message(path);
    const bool lacks_symbol = message.find("undefined symbol") != std::string::npos;
    refuse(file, fmt::format("cannot be loaded: {}; {}", message,
                             lacks_symbol ? "define it in one of the plug-in's files"
                                          : "check the libraries that it links to"));
  }
  if (const auto& errors = models::registration_errors(); !errors.empty()) {
    refuse(file, errors.front());
  }
  if (entry_count() == entries) {
    refuse(file, "registers nothing new; give each plug-in once");
  }
  return {.path = path, .identity = identity_of(path, content)};
}

}  // namespace

std::vector<std::string> requested_plugins(const std::vector<std::string>& arguments) {
  const std::vector<std::string> configs = values_of("--config", arguments);
  const auto chosen = [&](std::string_view flag, const char* key) {
    std::vector<std::string> values = values_of(flag, arguments);
    if (values.empty() && !configs.empty()) values = names_in_config_file(configs.back(), key);
    return values;
  };
  std::vector<std::string> files = chosen(plugin_flag, "plugin");
  const auto add = [&](std::string_view prefix, const std::vector<std::string>& values) {
    for (const std::string& text : values) {
      for (const std::string_view name : runtime::split(text, ',')) {
        const bool is_new = std::ranges::find(files, name) == files.end();
        if (name.starts_with(prefix) && is_new) files.emplace_back(name);
      }
    }
  };
  add(script_prefix, chosen("--model", "model"));
  add(schedules::order_prefix, chosen("--schedule", "schedule"));
  return files;
}

void load_plugins(const std::vector<std::string>& arguments) {
  if (const auto& errors = models::registration_errors(); !errors.empty()) {
    throw std::logic_error("this build: " + errors.front());
  }
  for (const std::string& file : requested_plugins(arguments)) plugins().push_back(load(file));
}

const std::vector<Plugin>& loaded_plugins() { return plugins(); }

std::vector<std::string> without_plugins(const std::vector<std::string>& arguments) {
  std::vector<std::string> others;
  values_of(plugin_flag, arguments, &others);
  return others;
}

void add_plugin_option(CLI::App& app) {
  app.add_option_function<std::string>(
         std::string(plugin_flag), [](const std::string&) {},
         "load a plug-in with models, data sets, schedules or strategies "
         "(docs/reference/plugins.md); may be repeated")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(file_group)
      ->type_name("FILE");
}

std::vector<std::string> worker_command() {
  std::vector<std::string> command = {"/proc/self/exe", "worker"};
  for (const Plugin& plugin : loaded_plugins()) {
    command.insert(command.end(), {std::string(plugin_flag), plugin.path});
  }
  return command;
}

void require_plugins(const std::vector<std::string>& identities) {
  std::vector<std::string> own;
  for (const Plugin& plugin : loaded_plugins()) own.push_back(plugin.identity);
  // Compares texts: a file's name may contain the sign that joins a list.
  const std::string wanted = fmt::format("{}", fmt::join(identities, "+"));
  const std::string loaded = fmt::format("{}", fmt::join(own, "+"));
  if (wanted == loaded) return;
  throw std::invalid_argument(
      fmt::format("{}: the row needs \"{}\", but this process has loaded \"{}\"; give every rank "
                  "the same files, and do not change them during the run",
                  plugin_flag, wanted, loaded));
}

}  // namespace stratagem::bench
