#include "reports/json_writer.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "reports/atomic_file.h"
#include "reports/json_fields.h"
#include "reports/record_json.h"
#include "reports/row_summary.h"
#include "reports/statistics.h"

namespace stratagem::reports {

using nlohmann::ordered_json;

namespace {

// Google Benchmark sorts by these: rows of one strategy and model are one family.
struct FamilyPosition {
  int family = 0;
  int instance = 0;
};

// The values that Google Benchmark reports for a repetition.
struct Sample {
  double real_time = 0;
  double cpu_time = 0;
  double items_per_second = 0;
};

Sample sample_of(const Row& row, const Repetition& repetition) {
  if (repetition.step_ms.empty()) {
    throw std::logic_error(row.name + ": repetition " + std::to_string(repetition.index) +
                           " has neither step_ms nor an error");
  }
  Sample sample{mean(repetition.step_ms), repetition.cpu_ms, 0};
  if (sample.real_time > 0) {
    sample.items_per_second = 1e3 * static_cast<double>(row.samples_per_step) / sample.real_time;
  }
  return sample;
}

/// Returns only the identity and the error of a row that failed.
ordered_json summary_json(const RowSummary& row) {
  if (row.error) {
    return {{"workload", row.workload},
            {"marks", row.marks},
            {"verification", row.verification},
            {"error", *row.error}};
  }
  ordered_json object = json_fields::json_of(row);
  if (!row.breakdown_ms) object["breakdown_ms"] = ordered_json::object();
  return object;
}

ordered_json stratagem_object(const Row& row, const Repetition& repetition) {
  ordered_json object{{"strategy", row.strategy},
                      {"model", row.model},
                      {"mesh", row.mesh},
                      {"samples_per_step", row.samples_per_step},
                      {"config", to_json(row.config)}};
  ordered_json measured = to_json(repetition);
  measured.erase("index");  // written outside as repetition_index
  object.update(measured);
  return object;
}

ordered_json entry_head(const Row& row, const std::string& name, FamilyPosition position,
                        const char* run_type) {
  return {{"name", name},
          {"family_index", position.family},
          {"per_family_instance_index", position.instance},
          {"run_name", row.name},
          {"run_type", run_type},
          {"repetitions", row.repetitions.size()}};
}

void add_times(ordered_json& entry, std::size_t iterations, const Sample& sample) {
  entry["iterations"] = iterations;
  entry["real_time"] = sample.real_time;
  entry["cpu_time"] = sample.cpu_time;
  entry["time_unit"] = "ms";
}

ordered_json repetition_entry(const Row& row, const Repetition& repetition,
                              FamilyPosition position) {
  ordered_json entry = entry_head(row, row.name, position, "iteration");
  entry["repetition_index"] = repetition.index;
  entry["threads"] = 1;
  if (repetition.error) {
    entry["error_occurred"] = true;
    entry["error_message"] = repetition.error->message;
    add_times(entry, 0, {});
  } else {
    const Sample sample = sample_of(row, repetition);
    add_times(entry, repetition.step_ms.size(), sample);
    entry["items_per_second"] = sample.items_per_second;
    for (const auto& [name, value] : repetition.counters) entry[name] = value;
  }
  entry["stratagem"] = stratagem_object(row, repetition);
  return entry;
}

double coefficient_of_variation(std::span<const double> values) {
  const double middle = mean(values);
  return middle == 0 ? 0 : sample_standard_deviation(values) / middle;
}

void add_aggregates(ordered_json& benchmarks, const Row& row, FamilyPosition position) {
  std::vector<double> real;
  std::vector<double> cpu;
  std::vector<double> rate;
  for (const Repetition* repetition : counted_launches(row)) {
    const Sample sample = sample_of(row, *repetition);
    real.push_back(sample.real_time);
    cpu.push_back(sample.cpu_time);
    rate.push_back(sample.items_per_second);
  }
  if (real.size() < 2) return;
  const auto add = [&](const char* name, const char* unit, auto statistic) {
    ordered_json entry = entry_head(row, row.name + "_" + name, position, "aggregate");
    entry["threads"] = 1;
    entry["aggregate_name"] = name;
    entry["aggregate_unit"] = unit;
    add_times(entry, real.size(), {statistic(real), statistic(cpu), 0});
    entry["items_per_second"] = statistic(rate);
    benchmarks.push_back(std::move(entry));
  };
  add("mean", "time", mean);
  add("median", "time", median);
  add("stddev", "time", sample_standard_deviation);
  add("cv", "percentage", coefficient_of_variation);
}

std::vector<FamilyPosition> family_positions(const std::vector<Row>& rows) {
  std::vector<FamilyPosition> positions;
  std::map<std::pair<std::string, std::string>, FamilyPosition> next;
  for (const Row& row : rows) {
    const FamilyPosition first{static_cast<int>(next.size()), 0};
    FamilyPosition& own = next.try_emplace({row.strategy, row.model}, first).first->second;
    positions.push_back(own);
    ++own.instance;
  }
  return positions;
}

ordered_json metrics_json(const std::vector<Metric>& metrics) {
  ordered_json object = ordered_json::object();
  for (const Metric& metric : metrics) {
    object[metric.name] = {
        {"unit", metric.unit}, {"better", metric.better}, {"deterministic", metric.deterministic}};
  }
  return object;
}

ordered_json context_json(const Context& context) {
  ordered_json object{{"date", context.date},
                      {"host_name", context.host_name},
                      {"executable", context.executable},
                      {"num_cpus", context.num_cpus},
                      {"mhz_per_cpu", std::llround(context.mhz_per_cpu)},
                      {"cpu_scaling_enabled", context.cpu_scaling_enabled},
                      {"caches", json_fields::json_of(context.caches)},
                      {"load_avg", context.load_average},
                      {"library_build_type", context.build_type}};
  object["stratagem"] = {
      {"schema", results_schema},
      {"version", context.version},
      {"git_commit", context.git_commit},
      {"command_line", context.command_line},
      {"fingerprint",
       {{"hardware", to_json(context.hardware)}, {"software", to_json(context.software)}}},
      {"calibration", to_json(context.calibration)},
      {"noise", to_json(context.noise)},
      {"disturbances", context.disturbances},
      {"metrics", metrics_json(context.metrics)}};
  return object;
}

}  // namespace

ordered_json results_json(const ResultFile& results) {
  ordered_json benchmarks = ordered_json::array();
  const std::vector<FamilyPosition> positions = family_positions(results.rows);
  const std::vector<RowSummary> summaries = summarise(results.rows);
  for (std::size_t index = 0; index < results.rows.size(); ++index) {
    const Row& row = results.rows[index];
    for (const Repetition& repetition : row.repetitions) {
      benchmarks.push_back(repetition_entry(row, repetition, positions[index]));
      if (&repetition != &row.repetitions.front()) continue;
      benchmarks.back()["stratagem"]["summary"] = summary_json(summaries[index]);
    }
    add_aggregates(benchmarks, row, positions[index]);
  }
  ordered_json document{{"context", context_json(results.context)},
                        {"benchmarks", std::move(benchmarks)}};
  json_fields::require_finite(document, "");
  return document;
}

void write_results(const std::string& path, const ResultFile& results) {
  // Messages of a crashed process may hold anything: bytes that are not UTF-8 are replaced.
  const std::string text =
      results_json(results).dump(2, ' ', false, ordered_json::error_handler_t::replace);
  write_file_atomically(path, text + "\n");
}

}  // namespace stratagem::reports
