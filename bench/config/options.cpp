#include "bench/config/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "strategies/ranks/mesh.h"
#include "strategies/runtime/parse.h"

namespace stratagem::bench {
namespace {

std::string range_text(const Bounds& bounds) {
  const bool low = std::isfinite(bounds.low);
  const bool high = std::isfinite(bounds.high);
  if (low && high) {
    if (bounds.low_excluded)
      return fmt::format("more than {}, {:g} at most", bounds.low, bounds.high);
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
        "{}: \"{}\" is not a {}; {}", where, text,
        std::is_floating_point_v<Number> ? "number" : "whole number", range_text(option.bounds)));
  }
  if (code != std::errc{} || !std::isfinite(static_cast<double>(value)) ||
      !is_within(option.bounds, static_cast<double>(value))) {
    throw std::invalid_argument(
        fmt::format("{}: {} is out of range; {}", where, text, range_text(option.bounds)));
  }
  return value;
}

bool parse_bool(std::string_view text, const std::string& where) {
  if (text != "on" && text != "off") {
    throw std::invalid_argument(fmt::format("{}: \"{}\" is neither on nor off", where, text));
  }
  return text == "on";
}

template <class Facts>
std::vector<std::string> names_of(const std::vector<Facts>& all) {
  std::vector<std::string> names;
  for (const Facts& facts : all) names.push_back(facts.name);
  return names;
}

// Empty where any text will do.
std::vector<std::string> choices_of(const Option& option, const Catalogue* catalogue) {
  if (!option.listed.empty() || catalogue == nullptr) return option.listed;
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
  if (text.empty()) throw std::invalid_argument(where + ": empty; expected a name");
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    throw std::invalid_argument(where + ": " + models::unknown_name(option.name, text, choices));
  }
  return std::string(text);
}

template <class Item>
std::string text_of(const Item& item) {
  if constexpr (std::is_same_v<Item, bool>) {
    return item ? "on" : "off";
  } else if constexpr (std::is_same_v<Item, std::vector<std::string>> ||
                       std::is_same_v<Item, std::vector<std::int64_t>>) {
    return fmt::format("{}", fmt::join(item, "+"));
  } else {
    return fmt::format("{}", item);
  }
}

const Config& defaults() {
  static const Config config;
  return config;
}

std::string default_text(const Option& option) {
  const std::string text = value_text(defaults(), option);
  if (option.name == "image_size") return "the model's own";
  return option.name == "device_ids" ? "0 to devices - 1" : text;
}

/// Whether the row's arrangement of devices has what an option of this kind is about. The other
/// dimensions of a tensor-parallel row are there only when its mesh says so.
bool arrangement_uses(UsedWhen used_when, const Config& config, const StrategyFacts& strategy) {
  const auto in_mesh = [&](const char* dimension) {
    return config.mesh != "auto" && ranks::parse_mesh(config.mesh).size(dimension) > 1;
  };
  switch (used_when) {
    case UsedWhen::between_ranks:
      return strategy.replicated || config.ranks > 1;
    case UsedWhen::several_stages:
      return !strategy.usually_one_stage || in_mesh("pipeline");
    case UsedWhen::one_stage:
      return !in_mesh("pipeline");
    case UsedWhen::several_replicas:
      if (strategy.reads("reduce")) return strategies::exchanges_buckets(config);
      if (config.shard != "none" || config.mixed_precision != "none") return false;
      return !strategy.tensor_parallel || in_mesh("data");
    case UsedWhen::halves_are_summed: {
      if (config.mixed_precision == "none") return false;
      const bool by_position = strategy.reads("keep_gathered") &&
                               arrangement_uses(UsedWhen::sharded_layers, config, strategy);
      return !strategy.tensor_parallel || in_mesh("data") || by_position;
    }
    case UsedWhen::scaled:
      return config.mixed_precision == "float16";
    case UsedWhen::scaled_dynamically:
      return config.mixed_precision == "float16" && config.loss_scale == "dynamic";
    case UsedWhen::state_sharded:
      return config.shard != "none" || !strategy.reads("shard");
    case UsedWhen::parameters_sharded:
      return config.shard == "parameters" || !strategy.reads("shard");
    case UsedWhen::sharded_layers:
      return config.mesh == "auto" || in_mesh("tensor");
    case UsedWhen::sums_are_shared:
      return config.device == "cpu" &&
             (!strategy.tensor_parallel || config.mesh == "auto" || in_mesh("tensor"));
    case UsedWhen::copies_kept:
      return config.replicate == "kept";
    default:
      return true;
  }
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

void set_value(Config& config, const Option& option, std::string_view text,
               const std::string& where, const Catalogue* catalogue) {
  std::visit(
      [&](auto member) {
        auto& field = config.*member;
        using Field = std::remove_reference_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, bool>) {
          field = parse_bool(text, where);
        } else if constexpr (std::is_same_v<Field, std::string>) {
          field = parse_choice(text, option, where, catalogue);
        } else if constexpr (std::is_arithmetic_v<Field>) {
          field = parse_number<Field>(text, option, where);
        } else if constexpr (std::is_same_v<Field, std::vector<std::string>>) {
          field.clear();
          for (const std::string_view part : runtime::split(text, '+')) {
            field.push_back(parse_choice(part, option, where, catalogue));
          }
        } else {
          field.clear();
          for (const std::string_view part : runtime::split(text, '+')) {
            field.push_back(parse_number<std::int64_t>(part, option, where));
          }
        }
      },
      option.member);
}

std::string value_text(const Config& config, const Option& option) {
  return std::visit([&](auto member) { return text_of(config.*member); }, option.member);
}

bool is_default(const Config& config, const Option& option) {
  return std::visit([&](auto member) { return config.*member == defaults().*member; },
                    option.member);
}

void reset_to_default(Config& config, const Option& option) {
  std::visit([&](auto member) { config.*member = defaults().*member; }, option.member);
}

bool is_used(const Option& option, const Config& config, const Catalogue& catalogue) {
  const ModelFacts* model = catalogue.model(config.model);
  switch (option.used_when) {
    case UsedWhen::always:
      return true;
    case UsedWhen::strategy_says:
    case UsedWhen::between_ranks:
    case UsedWhen::several_stages:
    case UsedWhen::several_replicas:
    case UsedWhen::sharded_layers:
    case UsedWhen::one_stage:
    case UsedWhen::state_sharded:
    case UsedWhen::parameters_sharded:
    case UsedWhen::halves_are_summed:
    case UsedWhen::scaled:
    case UsedWhen::scaled_dynamically:
    case UsedWhen::sums_are_shared:
    case UsedWhen::copies_kept: {
      const StrategyFacts* strategy = catalogue.strategy(config.strategy);
      return strategy != nullptr && strategy->reads(option.name) &&
             arrangement_uses(option.used_when, config, *strategy);
    }
    case UsedWhen::schedule_asks: {
      const ScheduleFacts* schedule = catalogue.schedule(config.schedule);
      return schedule != nullptr && schedule->asks_for_stages &&
             is_used(find_option("schedule"), config, catalogue);
    }
    case UsedWhen::model_has_images:
      return model != nullptr && model->has_images;
    case UsedWhen::model_has_tokens:
      return model != nullptr && model->has_tokens;
    case UsedWhen::model_has_labels:
      return model == nullptr || !model->has_tokens;
    case UsedWhen::model_takes_sizes:
      return model != nullptr && model->takes_sizes;
    case UsedWhen::on_cpu:
      return config.device == "cpu";
    case UsedWhen::on_cuda:
      return config.device == "cuda";
    case UsedWhen::optimizer_is_sgd:
      return config.optimizer == "sgd";
  }
  return true;
}

std::string help_text(const Option& option, const Catalogue& catalogue) {
  std::string text = option.meaning;
  if (!option.unit.empty()) text += ", in " + option.unit;
  if (const auto choices = choices_of(option, &catalogue); !choices.empty()) {
    text += fmt::format(": {}", fmt::join(choices, ", "));
  } else if (std::holds_alternative<bool Config::*>(option.member) && !option.is_switch) {
    text += ": on, off";
  }
  if (const std::string standard = default_text(option); !option.is_switch && !standard.empty()) {
    text += " [" + standard + "]";
  }
  const std::string users = users_of(option, catalogue);
  return users.empty() || is_listed_by_strategies(option.used_when) ? text
                                                                    : text + " (" + users + ")";
}

reports::Values record_values(const Config& config, const Catalogue& catalogue) {
  reports::Values values;
  for (const Option& option : option_table()) {
    reports::Value value;
    if (is_used(option, config, catalogue)) {
      std::visit(
          [&](auto member) {
            const auto& field = config.*member;
            using Field = std::remove_cvref_t<decltype(field)>;
            if constexpr (std::is_arithmetic_v<Field> || std::is_same_v<Field, std::string>) {
              value = field;
            } else if (!field.empty()) {
              value = text_of(field);
            }
          },
          option.member);
    }
    values.emplace_back(option.name, std::move(value));
  }
  return values;
}

}  // namespace stratagem::bench
