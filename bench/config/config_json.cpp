// Converts Config to and from JSON, for other processes and config files.

#include <nlohmann/json.hpp>

#include "bench/config/options.h"
#include "reports/json_fields.h"
#include "reports/record_json.h"

namespace stratagem::bench {

using nlohmann::json;

namespace {

std::string joined(const json& value, const Option& option, const std::string& where) {
  const bool names = std::holds_alternative<std::vector<std::string> Config::*>(option.member);
  std::string text;
  for (const json& item : value) {
    if (names ? !item.is_string() : !item.is_number_integer()) {
      reports::json_fields::wrong_type(where, names ? "names" : "whole numbers", item);
    }
    text += (text.empty() ? "" : "+") + (names ? item.get<std::string>() : item.dump());
  }
  return text;
}

// Has one overload for each field type.
struct TextFromJson {
  const Option& option;
  const json& value;
  const std::string& where;

  std::string operator()(bool Config::*) const {
    require(value.is_boolean(), "true or false");
    return value.get<bool>() ? "on" : "off";
  }
  std::string operator()(std::int64_t Config::*) const {
    require(value.is_number_integer(), "a whole number");
    return value.dump();
  }
  std::string operator()(double Config::*) const {
    require(value.is_number(), "a number");
    return value.dump();
  }
  std::string operator()(std::string Config::*) const { return name(); }
  std::string operator()(const runtime::ChoiceMember<Config>&) const { return name(); }
  std::string operator()(std::vector<std::string> Config::*) const {
    require(value.is_array() || value.is_string(), "names joined by +");
    return value.is_array() ? joined(value, option, where) : value.get<std::string>();
  }
  std::string operator()(std::vector<std::int64_t> Config::*) const {
    require(value.is_array() || value.is_string() || value.is_number_integer(),
            "whole numbers joined by +");
    if (value.is_array()) return joined(value, option, where);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  std::string name() const {
    require(value.is_string(), "a string");
    return value.get<std::string>();
  }

  void require(bool right, const char* wanted) const {
    if (!right) reports::json_fields::wrong_type(where, wanted, value);
  }
};

bool is_list(const Option& option) {
  return std::holds_alternative<std::vector<std::string> Config::*>(option.member) ||
         std::holds_alternative<std::vector<std::int64_t> Config::*>(option.member);
}

}  // namespace

std::string text_from_json(const Option& option, const json& value, const std::string& where) {
  return std::visit(TextFromJson{option, value, where}, option.member);
}

json to_json(const Config& config) { return reports::to_json(values_of(config)); }

json launch_options(const Config& config) {
  json options = to_json(config);
  for (const Option& option : option_table()) {
    if (option.of_run) options.erase(option.name);
  }
  return options;
}

Config config_from_json(const json& value) {
  reports::json_fields::require_object(value, "config");
  Config config;
  for (const auto& [name, item] : value.items()) {
    const Option& option = find_option(name);
    const std::string where = "config." + name;
    const std::string text = text_from_json(option, item, where);
    if (is_list(option) && text.empty()) {
      reset_to_default(config, option);
    } else if (option.name == "image_size" && text == "0") {
      config.image_size = 0;  // a model without images
    } else {
      set_value(config, option, text, where, nullptr);
    }
  }
  return config;
}

}  // namespace stratagem::bench
