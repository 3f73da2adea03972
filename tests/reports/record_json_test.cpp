#include "reports/record_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/reports/example_results.h"

namespace stratagem::reports::record_json_test {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string refusal(const json& value) {
  try {
    repetition_from_json(value, "result");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(RecordJson, ARepetitionComesBackAsItWas) {
  Repetition full = example_repetition(2, {10, 11});
  full.predicted_ms = 10.4;
  full.predicted_peak_memory_bytes = 405683252;
  full.predicted_from = {40, "the canary took 9% longer"};
  full.conditions = {"2026-01-15T10:20:30+00:00",        3, {20, 21}, {20.5, 20}, 0.25,
                     OwnCores{{2, 3}, 10, 0.5, 0.25, 40}};
  full.error = Error{1, "host", "B0 s1", "lost"};
  full.marks = {"shared", "waited"};
  full.verification->message = "largest at layer4.0.conv1.weight";
  for (const Repetition& repetition : {full, Repetition{}}) {
    const ordered_json written = to_json(repetition);
    const Repetition read = repetition_from_json(json::parse(written.dump()), "result");
    EXPECT_EQ(to_json(read), written);
  }
}

TEST(RecordJson, HasTheNamesOfTheResultsFile) {
  const json written = to_json(example_repetition(0, {10, 11}));
  EXPECT_TRUE(written.at("predicted_ms").is_null());
  EXPECT_TRUE(written.at("predicted_peak_memory_bytes").is_null());
  EXPECT_TRUE(written.at("error").is_null());
  EXPECT_DOUBLE_EQ(written.at("devices").at(1).at("bubble").at("measured"), 0.26);
  EXPECT_DOUBLE_EQ(written.at("devices").at(0).at("bubble").at("ideal"), 0.2);
  EXPECT_EQ(written.at("devices").at(0).at("breakdown_ms").size(), 8U);
  EXPECT_DOUBLE_EQ(written.at("devices").at(0).at("breakdown_ms").at("input_copy"), 0.0525);
  EXPECT_EQ(written.at("timeline").at(1), json({{"device", 1},
                                                {"kind", "backward"},
                                                {"stage", 1},
                                                {"micro_batch", 3},
                                                {"start_ms", 10.5},
                                                {"end_ms", 30.0}}));
  EXPECT_EQ(written.at("communication").at("all_reduce"),
            json({{"calls", 2}, {"payload_bytes", 1024}, {"wire_bytes", 2048}}));
  EXPECT_EQ(written.at("verification").at("passed"), true);
  EXPECT_EQ(to_json(Repetition{}).at("communication"), ordered_json::object());
}

TEST(RecordJson, AbsentAndUnknownFieldsAreFine) {
  EXPECT_EQ(refusal(json::object()), "no error");
  EXPECT_EQ(refusal({{"step_ms", {1.0, 2}}, {"later", "field"}, {"mfu", nullptr}}), "no error");
}

TEST(RecordJson, WrongTypesAreNamed) {
  EXPECT_EQ(refusal(json::array()), "result: expected an object, found a list");
  EXPECT_EQ(refusal({{"step_ms", {1.0, "2"}}}),
            "result.step_ms[1]: expected a number, found a string");
  EXPECT_EQ(refusal({{"devices", {{{"rank", 0.5}}}}}),
            "result.devices[0].rank: expected a whole number, found a number with a fraction");
  EXPECT_EQ(refusal({{"verification", {{"passed", "yes"}}}}),
            "result.verification.passed: expected true or false, found a string");
  EXPECT_EQ(refusal({{"timeline", {{{"kind", 3}}}}}),
            "result.timeline[0].kind: expected a string, found a whole number");
  EXPECT_EQ(refusal({{"index", 5000000000}}), "result.index: 5000000000 is too large");
}

TEST(RecordJson, NumbersThatJsonCannotHoldAreNamed) {
  Repetition repetition = example_repetition(0, {10, 11});
  repetition.loss[1] = std::numeric_limits<double>::quiet_NaN();
  try {
    to_json(repetition);
    FAIL() << "NaN was written";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "repetition.loss[1] is not a finite number, which JSON cannot hold");
  }
}

TEST(RecordJson, ValuesKeepOrderAndType) {
  const Values values = {
      {"z", true}, {"y", std::int64_t{2}}, {"x", 2.0}, {"w", "text"}, {"v", std::monostate{}}};
  const std::string text = to_json(values).dump();
  EXPECT_EQ(text, R"({"z":true,"y":2,"x":2.0,"w":"text","v":null})");
}

}  // namespace
}  // namespace stratagem::reports::record_json_test
