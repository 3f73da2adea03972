#include "bench/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/bench/another_value.h"
#include "tests/bench/error_of.h"
#include "tests/bench/example_catalogue.h"

namespace stratagem::bench::options_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Config with(const std::string& name, const std::string& text) {
  static const Catalogue catalogue = example_catalogue();
  Config config;
  const Option& option = find_option(name);
  set_value(config, option, text, option.flag, &catalogue);
  return config;
}

std::string refusal(const std::string& name, const std::string& text) {
  return error_of([&] { with(name, text); });
}

/// Converts to the type of any field.
struct AnyField {
  template <class T>
  operator T() const;
};

/// Of an aggregate; a base counts as one.
template <class T, class... Fields>
constexpr std::size_t field_count() {
  if constexpr (requires { T{Fields{}..., AnyField{}}; }) {
    return field_count<T, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

TEST(OptionTable, NamesEveryFieldOfConfigOnce) {
  // A field that the table lacks would not survive this: every value differs from the default.
  Config config;
  for (const Option& option : option_table()) {
    give_another_value(config, option);
  }
  constexpr std::size_t base = 1;
  EXPECT_EQ(option_table().size(),
            field_count<Config>() - base + field_count<strategies::StrategyOptions>());
  const Config standard;
  EXPECT_NE(config.strategy, standard.strategy);
  EXPECT_NE(config.cores_per_device, standard.cores_per_device);
  EXPECT_NE(config.timeout, standard.timeout);
  EXPECT_NE(config.cut, standard.cut);
  EXPECT_NE(config.memory_format, standard.memory_format);
  EXPECT_NE(config.weight_decay, standard.weight_decay);
  EXPECT_NE(config.verify, standard.verify);
  EXPECT_NE(config.plugin, standard.plugin);
}

TEST(OptionTable, WhichSchedulesAskForStagesTheCatalogueSays) {
  Catalogue catalogue = example_catalogue();
  catalogue.schedules.push_back({.name = "test_asks", .stages_per_device = schedules::any_number});
  const Option& option = find_option("virtual_stages");
  Config config;
  config.strategy = "pipeline";
  EXPECT_FALSE(is_used(option, config, catalogue));
  config.schedule = "test_asks";
  EXPECT_TRUE(is_used(option, config, catalogue));
  EXPECT_EQ(users_of(option, catalogue), "--schedule test_asks");
  config.strategy = "single";
  EXPECT_FALSE(is_used(option, config, catalogue));
}

TEST(OptionTable, OnlyRowsOfSearchedSchedulesReadTheOptionsOfASearch) {
  Catalogue catalogue = example_catalogue();
  catalogue.schedules.push_back({.name = "test_searched", .is_searched = true});
  for (const char* name : {"pass_times", "live_micro_batches"}) {
    const Option& option = find_option(name);
    Config config;
    config.strategy = "pipeline";
    EXPECT_FALSE(is_used(option, config, catalogue)) << name;
    config.schedule = "test_searched";
    EXPECT_TRUE(is_used(option, config, catalogue)) << name;
    EXPECT_EQ(users_of(option, catalogue), "--schedule test_searched");
  }
  EXPECT_EQ(refusal("live_micro_batches", "-1"),
            "--live-micro-batches: -1 is out of range; expected 0 to 1000000");
}

TEST(OptionTable, WhoReducesAndScattersIsAQuestionOfRowsOnCpus) {
  Catalogue catalogue = example_catalogue();
  catalogue.strategies.push_back({.name = "test_sharded", .options = {"reduce_scatter"}});
  catalogue.strategies.push_back({.name = "test_layers",
                                  .options = {"reduce_scatter", "keep_gathered", "shard"},
                                  .shares_sequence = true,
                                  .usual_dimensions = {"tensor"}});
  const Option& option = find_option("reduce_scatter");
  Config config;
  const auto used = [&](const std::string& strategy, decltype(Config::device) device,
                        const std::string& mesh) {
    config.strategy = strategy;
    config.device = device;
    config.mesh = mesh;
    return is_used(option, config, catalogue);
  };
  EXPECT_TRUE(used("test_sharded", "cpu", "auto"));
  EXPECT_TRUE(used("test_sharded", "cpu", "data=2"));
  EXPECT_FALSE(used("test_sharded", "cuda", "auto"));
  EXPECT_TRUE(used("test_layers", "cpu", "data=2/tensor=2"));
  EXPECT_FALSE(used("test_layers", "cpu", "data=2"));
  EXPECT_FALSE(used("single", "cpu", "auto"));
  EXPECT_EQ(users_of(option, catalogue), "test_sharded, test_layers");
}

TEST(OptionTable, FlagsAreTheNamesInKebabCase) {
  std::set<std::string> flags;
  for (const Option& option : option_table()) {
    EXPECT_TRUE(flags.insert(option.flag).second) << option.flag;
    std::string expected = "--" + option.name;
    std::replace(expected.begin(), expected.end(), '_', '-');
    const bool turns_off = option.is_switch && value_text(Config(), option) == "on";
    EXPECT_EQ(option.flag, turns_off ? "--no-" + expected.substr(2) : expected);
    EXPECT_FALSE(option.meaning.empty()) << option.name;
  }
}

TEST(OptionTable, DefaultsLieWithinTheirBoundsAndChoices) {
  for (const Option& option : option_table()) {
    const std::string text = value_text(Config{}, option);
    if (!text.empty()) {
      EXPECT_EQ(with(option.name, text), Config{}) << option.name;
    }
  }
}

TEST(SetValue, ReadsEveryKind) {
  EXPECT_EQ(with("split_size", "24").split_size, 24);
  EXPECT_DOUBLE_EQ(with("learning_rate", "1e-2").learning_rate, 0.01);
  EXPECT_TRUE(with("tf32", "on").tf32);
  EXPECT_EQ(with("schedule", "gpipe").schedule, "gpipe");
  EXPECT_EQ(with("cut", "layer2+layer4").cut, (std::vector<std::string>{"layer2", "layer4"}));
  EXPECT_EQ(with("device_ids", "0+3").device_ids, (std::vector<std::int64_t>{0, 3}));
}

TEST(SetValue, RefusesWithTheRangeThatIsRight) {
  EXPECT_EQ(refusal("split_size", "0"), "--split-size: 0 is out of range; expected 1 or more");
  EXPECT_EQ(refusal("split_size", "-4"), "--split-size: -4 is out of range; expected 1 or more");
  EXPECT_EQ(refusal("split_size", "99999999999999999999"),
            "--split-size: 99999999999999999999 is out of range; expected 1 or more");
  EXPECT_EQ(refusal("split_size", "4x"),
            "--split-size: \"4x\" is not a whole number; expected 1 or more");
  EXPECT_EQ(refusal("split_size", "2.5"),
            "--split-size: \"2.5\" is not a whole number; expected 1 or more");
  EXPECT_EQ(refusal("split_size", ""),
            "--split-size: \"\" is not a whole number; expected 1 or more");
  EXPECT_EQ(refusal("timeout", "0"),
            "--timeout: 0 is out of range; expected more than 0 and at most 1e+09");
  EXPECT_EQ(refusal("momentum", "1"),
            "--momentum: 1 is out of range; expected 0 or more and below 1");
  EXPECT_EQ(refusal("learning_rate", "nan"),
            "--learning-rate: nan is out of range; expected 0 or more");
  EXPECT_EQ(refusal("learning_rate", "1e999"),
            "--learning-rate: 1e999 is out of range; expected 0 or more");
  EXPECT_EQ(refusal("device_ids", "0+-1"), "--device-ids: -1 is out of range; expected 0 or more");
  EXPECT_EQ(refusal("tf32", "yes"), "--tf32: unknown value \"yes\"; choices: on, off");
  EXPECT_EQ(refusal("cut", "layer2++layer4"), "--cut: the value is empty; expected a name");
}

TEST(SetValue, UnknownChoiceNamesTheNearest) {
  EXPECT_EQ(refusal("schedule", "1f2b"),
            "--schedule: unknown schedule \"1f2b\": did you mean \"1f1b\"? choices: 1f1b, gpipe, "
            "naive");
  EXPECT_THAT(refusal("strategy", "pipelines"), HasSubstr("did you mean \"pipeline\"?"));
  EXPECT_THAT(refusal("model", "resnet-50"), HasSubstr("did you mean \"resnet50\"?"));
  EXPECT_THAT(refusal("device", "gpu"), HasSubstr("choices: cpu, cuda"));
}

TEST(ConfigJson, ComesBackAsItWas) {
  Config config;
  config.strategy = "pipeline";
  config.cut = {"layer2", "layer4"};
  config.device_ids = {0, 3};
  config.learning_rate = 0.1;
  config.tf32 = true;
  config.verify = false;
  config.image_size = 0;
  EXPECT_EQ(config_from_json(to_json(config)), config);
  EXPECT_EQ(config_from_json(json::parse(to_json(config).dump())), config);
  EXPECT_EQ(config_from_json(json::object()), Config{});
  EXPECT_EQ(to_json(config).size(), option_table().size());
  EXPECT_EQ(to_json(config).at("cut"), "layer2+layer4");
}

TEST(ConfigJson, ListsMayBeJsonLists) {
  const Config config = config_from_json({{"cut", {"layer2", "layer4"}}, {"device_ids", {0, 3}}});
  EXPECT_EQ(config.cut, (std::vector<std::string>{"layer2", "layer4"}));
  EXPECT_EQ(config.device_ids, (std::vector<std::int64_t>{0, 3}));
}

TEST(ConfigJson, RefusesUnknownKeysAndWrongTypes) {
  const auto refusal_of = [](const json& value) {
    return error_of([&] { config_from_json(value); });
  };
  EXPECT_EQ(refusal_of({{"split_sizes", 4}}),
            "unknown option \"split_sizes\": did you mean \"split_size\"?");
  EXPECT_EQ(refusal_of({{"split_size", "4"}}),
            "config.split_size: expected a whole number, found a string");
  EXPECT_EQ(refusal_of({{"split_size", 4.5}}),
            "config.split_size: expected a whole number, found a number with a fraction");
  EXPECT_EQ(refusal_of({{"verify", "off"}}),
            "config.verify: expected true or false, found a string");
  EXPECT_EQ(refusal_of({{"split_size", 0}}),
            "config.split_size: 0 is out of range; expected 1 or more");
  EXPECT_EQ(refusal_of(json::array()), "config: expected an object, found a list");
}

TEST(RecordValues, AreNullWhereTheRowDoesNotUseThem) {
  Config config;
  config.strategy = "single";
  config.cut = {};
  const reports::Values values = record_values(config, example_catalogue());
  ASSERT_EQ(values.size(), option_table().size());
  const auto value = [&](const std::string& name) {
    for (const auto& [key, item] : values) {
      if (key == name) {
        return item;
      }
    }
    return reports::Value("missing");
  };
  EXPECT_EQ(value("split_size"), reports::Value());
  EXPECT_EQ(value("tf32"), reports::Value());
  EXPECT_EQ(value("image_size"), reports::Value(std::int64_t{128}));
  EXPECT_EQ(value("strategy"), reports::Value("single"));
  EXPECT_EQ(value("verify"), reports::Value(true));
  config.strategy = "pipeline";
  config.cut = {"layer3"};
  const reports::Values used = record_values(config, example_catalogue());
  EXPECT_NE(
      std::find(used.begin(), used.end(), std::pair<std::string, reports::Value>("cut", "layer3")),
      used.end());
}

TEST(HelpText, HasUnitChoicesDefaultAndUsers) {
  const Catalogue catalogue = example_catalogue();
  EXPECT_EQ(help_text(find_option("split_size"), catalogue),
            "micro-batch size of a pipeline, in samples [12]");
  EXPECT_THAT(help_text(find_option("dtype"), catalogue),
              HasSubstr("optimizer state: float32, bfloat16, float16, float64; use"));
  EXPECT_EQ(help_text(find_option("order"), catalogue),
            "order of launches: random (within each round), block (all launches of a row in "
            "sequence) [random]");
  EXPECT_THAT(help_text(find_option("tf32"), catalogue),
              HasSubstr(": on, off [off] (--device cuda)"));
  EXPECT_THAT(help_text(find_option("image_size"), catalogue),
              HasSubstr("in pixels [the model's own] (resnet50, resnet18)"));
}

}  // namespace
}  // namespace stratagem::bench::options_test
