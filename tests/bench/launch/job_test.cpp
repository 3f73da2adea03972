#include "bench/launch/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "tests/bench/error_of.h"

namespace stratagem::bench::job_test {
namespace {

using nlohmann::json;

/// Gives every field another value than its own.
struct Fill {
  void operator()(std::string_view, bool& value) const { value = !value; }
  void operator()(std::string_view, int& value) const { value += 3; }
  void operator()(std::string_view, std::int64_t& value) const { value += 3; }
  void operator()(std::string_view, double& value) const { value += 0.375; }
  void operator()(std::string_view, std::string& value) const { value += "text"; }
  void operator()(std::string_view, Config& value) const { value.steps += 3; }
  void operator()(std::string_view, reports::Verification& value) const { value.passed = true; }
  void operator()(std::string_view, reports::Repetition& value) const { value.step_ms = {1.5, 2}; }
  void operator()(std::string_view, reports::TimelineEvent& value) const { value.kind = "forward"; }
  template <class T>
  void operator()(std::string_view name, std::optional<T>& value) const {
    (*this)(name, value.emplace());
  }
  template <class T>
  void operator()(std::string_view name, std::vector<T>& values) const {
    (*this)(name, values.emplace_back());
    (*this)(name, values.emplace_back());
  }
  template <class T>
  void operator()(std::string_view name, std::map<std::string, T>& values) const {
    (*this)(name, values["entry"]);
  }
  template <class T>
  requires reports::HasFields<T>
  void operator()(std::string_view, T& value) const { reports::each_field(value, *this); }
};

/// A kind of job, and what it results in, as JSON.
struct Document {
  std::string name;
  json blank;
  json filled;
  json (*again)(const json&);  // read, and written again
};

template <class Kind>
Document job_document() {
  Kind job;
  Fill()("job", job);
  return {Kind::name + std::string(" job"), to_json(Job(Kind{})), to_json(Job(job)),
          [](const json& value) {
            const Job read = job_from_json(value);
            EXPECT_TRUE(std::holds_alternative<Kind>(read));
            return to_json(read);
          }};
}

template <class Kind>
Document result_document() {
  typename Kind::Result result;
  Fill()("result", result);
  return {Kind::name + std::string(" result"), to_json(JobResult(typename Kind::Result{})),
          to_json(JobResult(result)),
          [](const json& value) { return to_json(JobResult(result_from_json<Kind>(value))); }};
}

template <class... Kind>
std::vector<Document> documents(std::type_identity<std::variant<Kind...>>) {
  return {job_document<Kind>()..., result_document<Kind>()...};
}

std::vector<Document> documents() { return documents(std::type_identity<Job>{}); }

TEST(Job, EveryFieldSurvivesTheWayToTheOtherProcess) {
  for (const Document& document : documents()) {
    SCOPED_TRACE(document.name);
    EXPECT_EQ(document.again(json::parse(document.filled.dump())), document.filled);
    for (const auto& [field, value] : document.filled.items()) {
      EXPECT_TRUE(field == "task" || value != document.blank.at(field)) << field;
    }
  }
}

TEST(Job, AMissingFieldIsNamed) {
  for (const Document& document : documents()) {
    for (const auto& [field, value] : document.filled.items()) {
      json lacking = document.filled;
      lacking.erase(field);
      const std::string error = error_of([&] { document.again(lacking); });
      if (field == "task") {
        EXPECT_EQ(error, "job.task: unknown task \"\"");
      } else {
        EXPECT_EQ(error, document.name + ": " + field + ": is missing");
      }
    }
  }
}

TEST(Job, AnUnknownFieldIsNamed) {
  for (const Document& document : documents()) {
    json more = document.filled;
    more["colour"] = "red";
    EXPECT_EQ(error_of([&] { document.again(more); }), document.name + ": colour: is not known");
  }
}

TEST(Job, AFieldOfAnotherTypeIsNamedWithItsPlace) {
  for (const Document& document : documents()) {
    for (const auto& [field, value] : document.filled.items()) {
      json wrong = document.filled;
      wrong[field] = value.is_array() ? json(7) : json::array({7});
      const std::string place = field == "task" ? "job.task" : document.name + ": " + field;
      EXPECT_THAT(error_of([&] { document.again(wrong); }), testing::StartsWith(place + ": "));
    }
  }
  json job = to_json(Job(MeasureJob{}));
  job["config"]["steps"] = "many";
  EXPECT_THAT(error_of([&] { job_from_json(job); }),
              testing::StartsWith("measure job: config: config.steps: expected"));
  json result = to_json(JobResult(CalibrateStagesResult{.costs = {{}, {}}}));
  result["costs"][1].erase("ms");
  EXPECT_EQ(error_of([&] { result_from_json<CalibrateStagesJob>(result); }),
            "calibrate_stages result: costs[1].ms: is missing");
}

TEST(Job, ARecordInAResultIsReadExactly) {
  MeasureResult measured;
  measured.repetitions.emplace_back().devices.emplace_back().memory_bytes["other"] = {};
  json result = to_json(JobResult(measured));
  json lacking = result;
  lacking["repetitions"][0].erase("loss");
  EXPECT_EQ(error_of([&] { result_from_json<MeasureJob>(lacking); }),
            "measure result: repetitions[0].loss: is missing");
  result["repetitions"][0]["devices"][0]["memory_bytes"]["other"].erase("peak");
  EXPECT_EQ(error_of([&] { result_from_json<MeasureJob>(result); }),
            "measure result: repetitions[0].devices[0].memory_bytes.other.peak: is missing");
  VerifyResult verified;
  verified.verification.own_arithmetic.emplace();
  json verdict = to_json(JobResult(verified));
  verdict["verification"]["own_arithmetic"]["colour"] = "red";
  EXPECT_EQ(error_of([&] { result_from_json<VerifyJob>(verdict); }),
            "verify result: verification.own_arithmetic.colour: is not known");
}

TEST(Job, AnUnknownTaskIsNamed) {
  EXPECT_EQ(error_of([] { job_from_json({{"task", "nap"}}); }), "job.task: unknown task \"nap\"");
}

}  // namespace
}  // namespace stratagem::bench::job_test
