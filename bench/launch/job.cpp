#include "bench/launch/job.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <type_traits>

#include "bench/config/options.h"
#include "reports/json_fields.h"
#include "reports/record_json.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

/// A struct that names its fields.
template <class T>
concept HasFields = requires(T& value) {
  T::each_field(value, [](const char*, const auto&) {});
};

struct Writer {
  static json write(const Config& config) { return to_json(config); }
  static json write(const reports::Verification& value) { return json(reports::to_json(value)); }
  static json write(const reports::Repetition& value) { return json(reports::to_json(value)); }
  static json write(const std::vector<reports::TimelineEvent>& timeline) {
    return json(reports::to_json(timeline));
  }

  template <class T>
  static json write(const std::optional<T>& value) {
    return value ? write(*value) : json();
  }

  template <class T>
  static json write(const std::vector<T>& values) {
    json list = json::array();
    for (const T& value : values) list.push_back(write(value));
    return list;
  }

  template <HasFields T>
  static json write(const T& value) {
    json object = json::object();
    T::each_field(value, [&](const char* name, const auto& field) { object[name] = write(field); });
    return object;
  }

  template <class T>
  static json write(const T& number_or_text) {
    return number_or_text;
  }
};

/// `where` is the place of the value, "measure job: config", as messages begin with it.
struct Reader {
  static void read(const json& value, const std::string& where, Config& target) {
    try {
      target = config_from_json(value);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", where, error.what()));
    }
  }
  static void read(const json& value, const std::string& where, reports::Verification& target) {
    target = reports::verification_from_json(value, where);
  }
  static void read(const json& value, const std::string& where, reports::Repetition& target) {
    target = reports::repetition_from_json(value, where);
  }
  static void read(const json& value, const std::string& where,
                   std::vector<reports::TimelineEvent>& target) {
    target = reports::timeline_from_json(value, where);
  }

  template <class T>
  static void read(const json& value, const std::string& where, std::optional<T>& target) {
    target.reset();
    if (!value.is_null()) read(value, where, target.emplace());
  }

  template <class T>
  static void read(const json& value, const std::string& where, std::vector<T>& target) {
    if (!value.is_array()) reports::json_fields::wrong_type(where, "a list", value);
    target.clear();
    for (const json& item : value) {
      const std::string place = fmt::format("{}[{}]", where, target.size());
      read(item, place, target.emplace_back());
    }
  }

  template <HasFields T>
  static void read(const json& value, const std::string& where, T& target) {
    reports::json_fields::require_object(value, where);
    const auto place = [&](const std::string& name) {
      return where + (where.ends_with(" job") || where.ends_with(" result") ? ": " : ".") + name;
    };
    std::set<std::string> unknown;
    for (const auto& [name, field] : value.items()) unknown.insert(name);
    T::each_field(target, [&](const char* name, auto& field) {
      if (unknown.erase(name) == 0) throw std::invalid_argument(place(name) + ": is missing");
      read(value.at(name), place(name), field);
    });
    if (unknown.empty()) return;
    throw std::invalid_argument(place(*unknown.begin()) + ": is not known");
  }

  template <class T>
  static void read(const json& value, const std::string& where, T& number_or_text) {
    reports::json_fields::convert(value, where, number_or_text);
  }
};

template <class Kind>
void read_kind(const json& value, const std::string& task, std::optional<Job>& job) {
  if (task != Kind::name) return;
  json fields = value;
  fields.erase("task");
  Reader::read(fields, task + " job", job.emplace().emplace<Kind>());
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
        json object = Writer::write(own);
        object["task"] = own.name;
        return object;
      },
      job);
}

json to_json(const JobResult& result) {
  return std::visit([](const auto& own) { return Writer::write(own); }, result);
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
  Reader::read(value, std::string(Kind::name) + " result", result);
  return result;
}

template CheckResult result_from_json<CheckJob>(const json& value);
template VerifyResult result_from_json<VerifyJob>(const json& value);
template CalibrateDeviceResult result_from_json<CalibrateDeviceJob>(const json& value);
template CalibrateStagesResult result_from_json<CalibrateStagesJob>(const json& value);
template MeasureResult result_from_json<MeasureJob>(const json& value);
template CollectivesResult result_from_json<CollectivesJob>(const json& value);

}  // namespace stratagem::bench
