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
    if (bounds.low_excluded) {
      return fmt::format("more than {}, {:g} at most", bounds.low, bounds.high);
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

/// Returns true if the row's devices are arranged so that an option of this kind has a meaning. A
/// row has the dimensions that are usual for its strategy, and those that its mesh adds.
bool arrangement_uses(UsedWhen used_when, const Config& config, const StrategyFacts& strategy) {
  const auto in_mesh = [&](const char* dimension) {
    return config.mesh != "auto" && ranks::parse_mesh(config.mesh).size(dimension) > 1;
  };
  const auto has = [&](const char* dimension) {
    return strategy.usually_spreads_over(dimension) || in_mesh(dimension);
  };
  // A mesh of stages or of sharded layers alone leaves the replicas out that are usual.
  const bool replaced = !in_mesh("data") && (in_mesh("pipeline") || in_mesh("tensor"));
  const bool has_replicas = has("data") && !replaced;
  const auto shards_layers = [&] {
    return config.mesh == "auto" ? strategy.usually_spreads_over("tensor") : in_mesh("tensor");
  };
  // Sharded layers without replicas: the check names the mesh that has some.
  const bool may_shard_state = has_replicas || strategy.usually_spreads_over("tensor");
  const auto shards_state = [&] {
    return !strategy.reads("shard") || (config.shard != "none" && may_shard_state);
  };
  const bool is_counted = strategy.reads("accumulation_steps") && config.accumulation_steps > 1;
  const bool cut_by_size = strategy.reads("split_size") && !is_counted && has("pipeline");
  switch (used_when) {
    case UsedWhen::between_ranks:
      return config.ranks > 1 || (!strategy.one_process && (has_replicas || has("tensor")));
    case UsedWhen::several_stages:
      return has("pipeline");
    case UsedWhen::cut_by_size:
      return cut_by_size;
    case UsedWhen::cut_by_count:
      // One micro-batch is stated of replicas alone, which else exchange gradients more than once.
      return is_counted || (!cut_by_size && strategy.usually_spreads_over("data"));
    case UsedWhen::replicas:
      return may_shard_state;
    case UsedWhen::several_replicas:
      if (strategy.reads("reduce")) return strategies::exchanges_buckets(config);
      return config.shard == "none" && config.mixed_precision == "none" && has_replicas;
    case UsedWhen::halves_are_summed:
      return config.mixed_precision != "none" &&
             (has_replicas || (strategy.reads("keep_gathered") && shards_layers()));
    case UsedWhen::scaled:
      return config.mixed_precision == "float16";
    case UsedWhen::scaled_dynamically:
      return config.mixed_precision == "float16" && config.loss_scale == "dynamic";
    case UsedWhen::state_sharded:
      return shards_state();
    case UsedWhen::parameters_sharded:
      return shards_state() && (config.shard == "parameters" || !strategy.reads("shard"));
    case UsedWhen::sharded_layers:
      return shards_layers();
    case UsedWhen::sums_are_shared:
      return config.device == "cpu" &&
             (shards_state() || (strategy.reads("keep_gathered") && shards_layers()));
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
    case UsedWhen::cut_by_size:
    case UsedWhen::cut_by_count:
    case UsedWhen::replicas:
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
