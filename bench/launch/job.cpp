#include "bench/launch/job.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "bench/config/options.h"
#include "reports/json_fields.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using reports::json_fields::convert;
using reports::json_fields::json_of;
using reports::json_fields::Reading;

}  // namespace

// reports/json_fields.h finds these two by their namespace to read and write a Config.

ordered_json json_of(const Config& config) { return to_json(config); }

void convert(const json& value, const std::string& where, Config& target, Reading /*reading*/) {
  try {
    target = config_from_json(value);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", where, error.what()));
  }
}

namespace {

template <class Kind>
void read_kind(const json& value, const std::string& task, std::optional<Job>& job) {
  if (task != Kind::name) return;
  json fields = value;
  fields.erase("task");
  convert(fields, task + " job", job.emplace().emplace<Kind>(), Reading::exact);
}

template <class... Kind>
std::optional<Job> read_any(const json& value, const std::string& task,
                            std::type_identity<std::variant<Kind...>>) {
  std::optional<Job> job;
  (read_kind<Kind>(value, task, job), ...);
  return job;
}

}  // namespace

JobHeader& header_of(Job& job) {
  return std::visit([](auto& own) -> JobHeader& { return own.header; }, job);
}

const JobHeader& header_of(const Job& job) {
  return std::visit([](const auto& own) -> const JobHeader& { return own.header; }, job);
}

json to_json(const Job& job) {
  return std::visit(
      [](const auto& own) {
        json object = json_of(own);
        object["task"] = own.name;
        return object;
      },
      job);
}

json to_json(const JobResult& result) {
  const ordered_json object = std::visit([](const auto& own) { return json_of(own); }, result);
  reports::json_fields::require_finite(object, "result");
  return object;
}

Job job_from_json(const json& value) {
  std::string task;
  reports::json_fields::require_object(value, "job");
  reports::json_fields::read(value, "task", "job", task);
  auto job = read_any(value, task, std::type_identity<Job>{});
  if (!job) throw std::invalid_argument(fmt::format("job.task: unknown task \"{}\"", task));
  return *std::move(job);
}

template <class Kind>
typename Kind::Result result_from_json(const json& value) {
  typename Kind::Result result;
  convert(value, std::string(Kind::name) + " result", result, Reading::exact);
  return result;
}

template CheckResult result_from_json<CheckJob>(const json& value);
template VerifyResult result_from_json<VerifyJob>(const json& value);
template CanaryResult result_from_json<CanaryJob>(const json& value);
template CalibrateDeviceResult result_from_json<CalibrateDeviceJob>(const json& value);
template CalibrateStagesResult result_from_json<CalibrateStagesJob>(const json& value);
template ReferenceResult result_from_json<ReferenceJob>(const json& value);
template MeasureResult result_from_json<MeasureJob>(const json& value);
template CollectivesResult result_from_json<CollectivesJob>(const json& value);
template TrainResult result_from_json<TrainJob>(const json& value);

}  // namespace stratagem::bench
