#include "bench/config/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "strategies/runtime/parse.h"

namespace stratagem::bench {
namespace {

using strategies::Bounds;
using strategies::Choices;
using ChoiceMember = runtime::ChoiceMember<Config>;

std::string range_text(const Bounds& bounds) {
  const bool low = std::isfinite(bounds.low);
  const bool high = std::isfinite(bounds.high);
  if (low && high) {
    if (bounds.low_excluded) {
      return fmt::format("more than {} and at most {:g}", bounds.low, bounds.high);
    }
    return bounds.high_excluded ? fmt::format("{} or more and below {}", bounds.low, bounds.high)
                                : fmt::format("{} to {}", bounds.low, bounds.high);
  }
  return bounds.low_excluded ? fmt::format("more than {}", bounds.low)
                             : fmt::format("{} or more", bounds.low);
}

bool is_within(const Bounds& bounds, double value) {
  const bool above = bounds.low_excluded ? value > bounds.low : value >= bounds.low;
  return above && (bounds.high_excluded ? value < bounds.high : value <= bounds.high);
}

template <class Number>
Number parse_number(std::string_view text, const Option& option, const std::string& where) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (text.empty() || stop != end ||
      (code != std::errc{} && code != std::errc::result_out_of_range)) {
    throw std::invalid_argument(fmt::format(
        "{}: \"{}\" is not a {}; expected {}", where, text,
        std::is_floating_point_v<Number> ? "number" : "whole number", range_text(option.bounds)));
  }
  if (code != std::errc{} || !std::isfinite(static_cast<double>(value)) ||
      !is_within(option.bounds, static_cast<double>(value))) {
    throw std::invalid_argument(
        fmt::format("{}: {} is out of range; expected {}", where, text, range_text(option.bounds)));
  }
  return value;
}

bool parse_bool(std::string_view text, const std::string& where) {
  if (text != "on" && text != "off") {
    throw std::invalid_argument(
        fmt::format("{}: unknown value \"{}\"; choices: on, off", where, text));
  }
  return text == "on";
}

template <class Facts>
std::vector<std::string> names_of(const std::vector<Facts>& all) {
  std::vector<std::string> names;
  for (const Facts& facts : all) names.push_back(facts.name);
  return names;
}

// Returns an empty list if any text is valid.
std::vector<std::string> choices_of(const Option& option, const Catalogue* catalogue) {
  if (const auto* choice = std::get_if<ChoiceMember>(&option.member)) {
    return {choice->names.begin(), choice->names.end()};
  }
  if (catalogue == nullptr) return {};
  switch (option.choices) {
    case Choices::strategies:
      return names_of(catalogue->strategies);
    case Choices::models:
      return names_of(catalogue->models);
    case Choices::schedules:
      return names_of(catalogue->schedules);
    case Choices::any_text:
      return {};
  }
  return {};
}

std::string parse_choice(std::string_view text, const Option& option, const std::string& where,
                         const Catalogue* catalogue) {
  const std::vector<std::string> choices = choices_of(option, catalogue);
  if (text.empty()) throw std::invalid_argument(where + ": the value is empty; expected a name");
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    const std::string kind = option.choices == Choices::any_text ? "value" : option.name;
    throw std::invalid_argument(where + ": " + models::unknown_name(kind, text, choices));
  }
  return std::string(text);
}

/// Has one overload for each kind of member.
struct FieldFromText {
  Config& config;
  const Option& option;
  std::string_view text;
  const std::string& where;
  const Catalogue* catalogue;

  void operator()(bool Config::*member) const { config.*member = parse_bool(text, where); }
  void operator()(std::string Config::*member) const { config.*member = item<std::string>(text); }
  void operator()(const ChoiceMember& member) const { member.set(config, item<std::string>(text)); }

  template <class Number>
  void operator()(Number Config::*member) const {
    config.*member = item<Number>(text);
  }

  template <class Item>
  void operator()(std::vector<Item> Config::*member) const {
    (config.*member).clear();
    for (const std::string_view part : runtime::split(text, '+')) {
      (config.*member).push_back(item<Item>(part));
    }
  }

  template <class Item>
  Item item(std::string_view part) const {
    if constexpr (std::is_same_v<Item, std::string>) {
      return parse_choice(part, option, where, catalogue);
    } else {
      return parse_number<Item>(part, option, where);
    }
  }
};

/// Has one overload for each kind of member.
struct ValueOfField {
  const Config& config;

  reports::Value operator()(const ChoiceMember& member) const { return member.name_in(config); }

  template <class Item>
  reports::Value operator()(std::vector<Item> Config::*member) const {
    return fmt::format("{}", fmt::join(config.*member, "+"));
  }

  template <class Field>
  reports::Value operator()(Field Config::*member) const {
    return config.*member;
  }
};

const Config& defaults() {
  static const Config config;
  return config;
}

std::string default_text(const Option& option) {
  const std::string text = value_text(defaults(), option);
  if (option.name == "image_size") return "the model's own";
  return option.name == "device_ids" ? "0 to devices - 1" : text;
}

}  // namespace

const Option& find_option(std::string_view name) {
  std::vector<std::string> names;
  for (const Option& option : option_table()) {
    if (option.name == name) return option;
    names.push_back(option.name);
  }
  throw std::invalid_argument(
      fmt::format("unknown option \"{}\"{}", name, models::did_you_mean(name, names)));
}

std::string kebab_flag(std::string name) {
  std::ranges::replace(name, '_', '-');
  return "--" + name;
}

void set_value(Config& config, const Option& option, std::string_view text,
               const std::string& where, const Catalogue* catalogue) {
  std::visit(FieldFromText{config, option, text, where, catalogue}, option.member);
}

reports::Value value_of(const Config& config, const Option& option) {
  return std::visit(ValueOfField{config}, option.member);
}

std::string value_text(const Config& config, const Option& option) {
  const reports::Value value = value_of(config, option);
  if (const auto* on = std::get_if<bool>(&value)) return *on ? "on" : "off";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  return std::get<std::string>(value);
}

bool is_default(const Config& config, const Option& option) {
  return value_of(config, option) == value_of(defaults(), option);
}

void reset_to_default(Config& config, const Option& option) {
  std::visit(
      [&](const auto& member) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, ChoiceMember>) {
          member.set(config, member.name_in(defaults()));
        } else {
          config.*member = defaults().*member;
        }
      },
      option.member);
}

bool is_used(const Option& option, const Config& config, const Catalogue& catalogue) {
  const RowFacts row(config, catalogue);
  const UsedWhen& used = condition(option.used_when);
  if (!used.of_strategies) return used.holds(row);
  return row.strategy != nullptr && row.strategy->reads(option.name) && used.holds(row);
}

std::string users_of(const Option& option, const Catalogue& catalogue) {
  const UsedWhen& used = condition(option.used_when);
  if (used.users != nullptr) return used.users(catalogue);
  std::vector<std::string> users;
  for (const strategies::StrategyEntry& strategy : catalogue.strategies) {
    if (strategy.reads(option.name)) users.push_back(strategy.name);
  }
  return fmt::format("{}", fmt::join(users, ", "));
}

std::string users_and_conditions(const Option& option, const Catalogue& catalogue) {
  const UsedWhen& used = condition(option.used_when);
  if (used.besides == nullptr) return users_of(option, catalogue);
  std::vector<std::pair<std::string, std::vector<std::string>>> by_condition;
  for (const strategies::StrategyEntry& strategy : catalogue.strategies) {
    if (!strategy.reads(option.name)) continue;
    const std::string condition = used.besides(strategy);
    const auto found =
        std::ranges::find(by_condition, condition, [](auto& each) { return each.first; });
    if (found != by_condition.end()) {
      found->second.push_back(strategy.name);
    } else {
      by_condition.push_back({condition, {strategy.name}});
    }
  }
  // Strategies without a condition come first, so that no condition seems to apply to them.
  std::stable_partition(by_condition.begin(), by_condition.end(),
                        [](const auto& each) { return each.first.empty(); });
  std::string words;
  for (const auto& [condition, names] : by_condition) {
    words += fmt::format("{}{}{}{}", words.empty() ? "" : ", and to ", fmt::join(names, ", "),
                         condition.empty() ? "" : " with ", condition);
  }
  return words;
}

std::string with_choices(std::string meaning, const std::vector<std::string>& choices) {
  const auto is_named = [&meaning](const std::string& choice) {
    return meaning.find(choice) != std::string::npos;
  };
  if (std::ranges::all_of(choices, is_named)) return meaning;
  return meaning.insert(std::min(meaning.find(';'), meaning.size()),
                        fmt::format(": {}", fmt::join(choices, ", ")));
}

std::string help_text(const Option& option, const Catalogue& catalogue) {
  std::string text = with_choices(option.meaning, choices_of(option, &catalogue));
  if (!option.unit.empty())
    text.insert(std::min(text.find(';'), text.size()), ", in " + option.unit);
  if (std::holds_alternative<bool Config::*>(option.member) && !option.is_switch) {
    text += ": on, off";
  }
  if (const std::string standard = default_text(option); !option.is_switch && !standard.empty()) {
    text += " [" + standard + "]";
  }
  const std::string users = users_of(option, catalogue);
  return users.empty() || is_strategys_own(option) ? text : text + " (" + users + ")";
}

reports::Values values_of(const Config& config) {
  reports::Values values;
  for (const Option& option : option_table()) {
    values.emplace_back(option.name, value_of(config, option));
  }
  return values;
}

reports::Values record_values(const Config& config, const Catalogue& catalogue) {
  const reports::Value empty_list = std::string();
  reports::Values values = values_of(config);
  for (auto& [name, value] : values) {
    if (value == empty_list || !is_used(find_option(name), config, catalogue)) value = {};
  }
  return values;
}

}  // namespace stratagem::bench
