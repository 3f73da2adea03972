#include "bench/config/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/config/options.h"
#include "reports/file_reader.h"
#include "reports/json_fields.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;
using reports::json_fields::convert;

/// Returns the message without the library's prefix: " at line 3, column 5: syntax error ...", or
/// ": number overflow parsing '1e999'".
std::string reason_of(const json::exception& error) {
  const std::string text = error.what();
  const std::string place = "parse error";
  if (const auto start = text.find(place); start != std::string::npos) {
    return text.substr(start + place.size());
  }
  return ":" + text.substr(text.find(']') + 1);
}

json parse(const std::string& path) {
  try {
    const std::string text = reports::read_file(path, "a JSON file of options");
    return reports::json_fields::parse_distinct(text, path);
  } catch (const json::exception& error) {
    std::string message = fmt::format("{}: not valid JSON{}", path, reason_of(error));
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw std::invalid_argument(message);
  }
}

std::vector<std::string> texts_of(const Option& option, const json& value,
                                  const std::string& where) {
  if (!value.is_array()) return {text_from_json(option, value, where)};
  std::vector<std::string> texts;
  for (std::size_t index = 0; index < value.size(); ++index) {
    texts.push_back(text_from_json(option, value[index], fmt::format("{}[{}]", where, index)));
  }
  if (texts.empty()) throw std::invalid_argument(where + ": an empty list; give one value or more");
  return texts;
}

/// Returns one text, or a list of them.
std::vector<std::string> one_or_several(const json& value, const std::string& where) {
  std::vector<std::string> paths;
  if (value.is_string()) {
    convert(value, where, paths.emplace_back());
  } else if (value.is_array()) {
    convert(value, where, paths);
  } else {
    reports::json_fields::wrong_type(where, "a string or a list of strings", value);
  }
  return paths;
}

// Reads a key that is not a field of a row; returns false for any other key.
bool read_special(ConfigFile& file, const std::string& key, const json& value,
                  const std::string& where) {
  RunFiles& files = file.selection.files;
  const std::map<std::string, std::string*> texts = {
      {"preset", &file.preset}, {"out", &files.out}, {"trace", &files.trace}};
  const std::map<std::string, bool*> switches = {
      {"resume", &files.resume}, {"quiet", &files.quiet}, {"anonymous", &files.anonymous}};
  if (const auto text = texts.find(key); text != texts.end()) {
    convert(value, where, *text->second);
  } else if (const auto found = switches.find(key); found != switches.end()) {
    convert(value, where, *found->second);
  } else if (key == "no_verify") {
    bool skipped = false;
    convert(value, where, skipped);
    file.selection.options["verify"] = {{skipped ? "off" : "on"}, Origin::config_file, where};
  } else if (key == "plugin") {
    one_or_several(value, where);  // already loaded, before the registries were read
  } else if (key == per_device_batch_size) {
    file.selection.options[key] = {texts_of(find_option("global_batch_size"), value, where),
                                   Origin::config_file, where};
  } else {
    return false;
  }
  return true;
}

[[noreturn]] void unknown_key(const std::string& path, const std::string& key) {
  std::vector<std::string> known = {"preset", "out",       "trace",     "resume",
                                    "quiet",  "anonymous", "no_verify", per_device_batch_size};
  for (const Option& option : option_table()) known.push_back(option.name);
  throw std::invalid_argument(
      fmt::format("{}: unknown key \"{}\"{}", path, key, models::did_you_mean(key, known)));
}

}  // namespace

std::vector<std::string> names_in_config_file(const std::string& path, const std::string& key) {
  const json document = parse(path);
  if (!document.is_object() || !document.contains(key)) return {};
  return one_or_several(document[key], path + ": " + key);
}

ConfigFile read_config_file(const std::string& path) {
  const json document = parse(path);
  if (!document.is_object()) {
    reports::json_fields::wrong_type(path, "an object of options", document);
  }
  ConfigFile file;
  for (const auto& [key, value] : document.items()) {
    const std::string where = path + ": " + key;
    if (read_special(file, key, value, where)) continue;
    const auto table = option_table();
    const auto option = std::ranges::find(table, key, &Option::name);
    if (option == table.end()) unknown_key(path, key);
    file.selection.options[key] = {texts_of(*option, value, where), Origin::config_file, where};
  }
  return file;
}

}  // namespace stratagem::bench
