#include "reports/results_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "reports/file_reader.h"
#include "reports/json_fields.h"
#include "reports/json_writer.h"
#include "reports/record_json.h"

namespace stratagem::reports {

using json_fields::read;
using json_fields::require_object;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

ordered_json parse(const std::string& path) {
  ordered_json document = ordered_json::parse(read_file(path, "a results file"), nullptr, false);
  if (document.is_discarded()) {
    throw std::invalid_argument(path + ": not valid JSON, perhaps cut short");
  }
  return document;
}

const ordered_json& require_member(const ordered_json& object, const char* key,
                                   const std::string& where) {
  if (!object.is_object() || !object.contains(key)) {
    throw std::invalid_argument(where + ": `" + key + "` is missing; expected a results file");
  }
  return object.at(key);
}

Values values_of(const ordered_json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  return found == object.end() ? Values{} : values_from_json(*found, where + "." + key);
}

std::vector<Metric> metrics_of(const ordered_json& own, const std::string& where) {
  std::vector<Metric> metrics;
  const auto found = own.find("metrics");
  if (found == own.end()) {
    return metrics;
  }
  for (const auto& [name, value] : found->items()) {
    const std::string place = where + ".metrics." + name;
    const json item = value;
    require_object(item, place);
    Metric& metric = metrics.emplace_back();
    metric.name = name;
    read(item, "unit", place, metric.unit);
    read(item, "better", place, metric.better);
    read(item, "deterministic", place, metric.deterministic);
  }
  return metrics;
}

Context context_of(const ordered_json& document, const std::string& path) {
  const std::string where = path + ": context";
  const ordered_json& ordered = require_member(document, "context", path);
  const ordered_json& own = require_member(ordered, "stratagem", where);
  const std::string own_place = where + ".stratagem";
  const json outer = ordered;
  const json inner = own;
  require_object(inner, own_place);
  std::string schema;
  read(inner, "schema", own_place, schema);
  if (schema != results_schema) {
    throw std::invalid_argument(own_place + ".schema: expected \"" + results_schema +
                                "\", found \"" + schema + "\"");
  }
  Context context;
  read(outer, "date", where, context.date);
  read(outer, "host_name", where, context.host_name);
  read(outer, "executable", where, context.executable);
  read(outer, "num_cpus", where, context.num_cpus);
  read(outer, "mhz_per_cpu", where, context.mhz_per_cpu);
  read(outer, "cpu_scaling_enabled", where, context.cpu_scaling_enabled);
  read(outer, "load_avg", where, context.load_average);
  read(outer, "library_build_type", where, context.build_type);
  read(inner, "version", own_place, context.version);
  read(inner, "git_commit", own_place, context.git_commit);
  read(inner, "command_line", own_place, context.command_line);
  if (const auto fingerprint = own.find("fingerprint"); fingerprint != own.end()) {
    context.hardware = values_of(*fingerprint, "hardware", own_place + ".fingerprint");
    context.software = values_of(*fingerprint, "software", own_place + ".fingerprint");
  }
  context.calibration = values_of(own, "calibration", own_place);
  context.noise = values_of(own, "noise", own_place);
  read(inner, "disturbances", own_place, context.disturbances);
  context.metrics = metrics_of(own, own_place);
  return context;
}

Row& row_named(std::vector<Row>& rows, const std::string& name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  if (found != rows.end()) {
    return *found;
  }
  rows.emplace_back().name = name;
  return rows.back();
}

void add_entry(std::vector<Row>& rows, const ordered_json& ordered, const std::string& where) {
  const json entry = ordered;
  require_object(entry, where);
  std::string run_type;
  read(entry, "run_type", where, run_type);
  if (run_type == "aggregate") {
    return;
  }
  std::string name;
  read(entry, "run_name", where, name);
  if (name.empty()) {
    throw std::invalid_argument(where + ".run_name: missing; expected the row's name");
  }
  const ordered_json& own = require_member(ordered, "stratagem", where);
  const std::string own_place = where + ".stratagem";
  const json inner = own;
  require_object(inner, own_place);
  Row& row = row_named(rows, name);
  read(inner, "strategy", own_place, row.strategy);
  read(inner, "model", own_place, row.model);
  read(inner, "mesh", own_place, row.mesh);
  read(inner, "samples_per_step", own_place, row.samples_per_step);
  row.config = values_of(own, "config", own_place);
  Repetition repetition = repetition_from_json(inner, own_place);
  read(entry, "repetition_index", where, repetition.index);
  row.repetitions.push_back(std::move(repetition));
}

}  // namespace

ResultFile read_results(const std::string& path) {
  const ordered_json document = parse(path);
  ResultFile results;
  results.context = context_of(document, path);
  const ordered_json& entries = require_member(document, "benchmarks", path);
  if (!entries.is_array()) {
    json_fields::wrong_type(path + ": benchmarks", "a list", json(entries));
  }
  for (std::size_t index = 0; index < entries.size(); ++index) {
    add_entry(results.rows, entries[index], path + ": benchmarks[" + std::to_string(index) + "]");
  }
  return results;
}

}  // namespace stratagem::reports
