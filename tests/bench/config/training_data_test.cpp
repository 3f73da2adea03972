// What a training that goes on must keep: every option decides, and the data by their content.
#include "bench/config/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "bench/config/options.h"
#include "tests/bench/another_value.h"
#include "tests/bench/error_of.h"

namespace stratagem::bench::training_data_test {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using training::TrainingOptions;

constexpr std::int64_t steps = 40;
constexpr const char* accepted = "no error";

/// Vectors of one number each, and a label.
class Numbers final : public datasets::Dataset {
 public:
  explicit Numbers(std::vector<float> values, std::int64_t label = 0)
      : values_(std::move(values)), label_(label) {}

  const datasets::SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(values_.size()); }
  datasets::Sample sample(std::int64_t index) const override {
    return {.values = std::span(values_).subspan(static_cast<std::size_t>(index), 1),
            .label = label_};
  }

 private:
  std::vector<float> values_;
  std::int64_t label_;
  datasets::SampleFormat format_{.features = 1, .classes = 2};
};

ordered_json work(const Config& row, const TrainingOptions& options = {},
                  const datasets::Dataset& data = Numbers({1, 2, 3})) {
  return work_of(row, options, data, steps);
}

std::string refusal(const ordered_json& then, const ordered_json& now) {
  return error_of([&] { require_same_work("file.pt", then.dump(), now); });
}

/// The default with another value of one option.
Config with_another(const Option& option) {
  Config config;
  give_another_value(config, option);
  return config;
}

TEST(TrainingWork, EveryOptionDecidesWhetherItMayChange) {
  for (const Option& option : option_table()) {
    SCOPED_TRACE(option.name);
    EXPECT_NE(option.at_resume, strategies::AtResume::undecided)
        << "say in the table beside its member whether --resume may change it";
    const std::string found = refusal(work(Config()), work(with_another(option)));
    if (option.at_resume == strategies::AtResume::may_change) {
      EXPECT_EQ(found, accepted);
    } else {
      EXPECT_THAT(found, HasSubstr("file.pt: belongs to a training with " + option.name));
    }
  }
}

TEST(TrainingWork, EveryOptionOfTheTrainingIsOfOneKind) {
  std::set<std::string> names;
  std::size_t count = 0;
  const TrainingOptions options;
  const auto take = [&](const char* name, const auto&) {
    names.insert(name);
    ++count;
  };
  TrainingOptions::each_of_the_work(options, take);
  const std::size_t kept = count;
  TrainingOptions::each_that_may_change(options, take);
  EXPECT_EQ(names.size(), count);
  const ordered_json all = work(Config());
  for (const auto& [name, value] : all.items()) names.erase(name);
  EXPECT_EQ(names.size(), count - kept);
}

TEST(TrainingWork, PartsOfTheDataAndRatesAreKept) {
  const ordered_json then = work(Config(), {.validation = 0.1});
  EXPECT_EQ(refusal(then, work(Config(), {.validation = 0.5})),
            "file.pt: belongs to a training with validation 0.1, this one has 0.5; "
            "--validation must not change");
  EXPECT_THAT(refusal(work(Config()), work(Config(), {.test = -1})),
              HasSubstr("test \"none\", this one has \"own\""));
  EXPECT_THAT(refusal(work(Config()), work(Config(), {.learning_rate_schedule = "cosine"})),
              HasSubstr("learning_rate_schedule \"constant\", this one has \"cosine\""));
}

TEST(TrainingWork, MoreEpochsAreTakenWhereTheRateDoesNotDependOnThem) {
  const Numbers data({1, 2, 3});
  const auto longer = [&](const TrainingOptions& options) {
    return refusal(work_of(Config(), options, data, 40), work_of(Config(), options, data, 80));
  };
  EXPECT_EQ(longer({}), accepted);
  EXPECT_THAT(longer({.learning_rate_schedule = "cosine"}),
              HasSubstr("schedule_steps 40, this one has 80; --schedule-steps must not change"));
  EXPECT_EQ(longer({.learning_rate_schedule = "cosine", .schedule_steps = 40}), accepted);
}

TEST(TrainingWork, DataAreComparedByTheirContent) {
  const ordered_json then = work(Config(), {.data = "mnist:here"}, Numbers({1, 2, 3}));
  EXPECT_EQ(refusal(then, work(Config(), {.data = "mnist:there"}, Numbers({1, 2, 3}))), accepted);
  for (const Numbers& other : {Numbers({1, 2, 4}), Numbers({1, 2, 3}, 1), Numbers({1, 2})}) {
    EXPECT_EQ(refusal(then, work(Config(), {.data = "mnist:here"}, other)),
              "file.pt: belongs to a training on other data; --data, --samples and --targets must "
              "not change");
  }
}

TEST(TrainingWork, LargeDataAreComparedBySamplesAmongThem) {
  constexpr std::size_t many = 12'000'000;
  std::vector<float> values(many, 1);
  const std::uint64_t whole = content_hash_of(Numbers(values));
  values[0] = 2;
  EXPECT_NE(content_hash_of(Numbers(values)), whole);
}

TEST(TrainingWork, WhatAFileDoesNotNameHadItsDefaultOrIsNotKnown) {
  Config row;
  row.weight_decay = 0.5;
  ordered_json then = work(row);
  then.erase("weight_decay");
  EXPECT_THAT(refusal(then, work(row)), HasSubstr("weight_decay 0.0, this one has 0.5"));
  then.erase("learning_rate");  // as the first trainings, which compared what they named
  EXPECT_EQ(refusal(then, work(row)), accepted);
  then.erase("mixed_precision");
  row.mixed_precision = "bfloat16";
  EXPECT_THAT(refusal(then, work(row)), HasSubstr("mixed_precision \"none\""));
  EXPECT_THAT(refusal("nothing", work(row)), HasSubstr("file.pt: does not record"));
}

}  // namespace
}  // namespace stratagem::bench::training_data_test
