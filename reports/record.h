// The record of a measurement: plain structs of standard types, without logic.
//
// Measuring fills them, writers only render them (reports/json_writer.h, console_table.h, ...).
// Times are milliseconds, sizes bytes. An empty optional is written as null; no value is ever NaN
// or infinite.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reports/fields.h"

namespace stratagem::reports {

/// Every option of a row under its snake_case name, in the order of the option table. The first
/// alternative is written as null: an option that the row does not use.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;
using Values = std::vector<std::pair<std::string, Value>>;

/// One action of one device. Times are relative to the start of the step that it belongs to.
struct TimelineEvent {
  int device = 0;
  std::string kind;  // "forward", "backward", "copy_input", "copy_activation", "copy_gradient", ...
  int stage = 0;
  int micro_batch = 0;
  double start_ms = 0;
  double end_ms = 0;

  STRATAGEM_FIELDS(device, kind, stage, micro_batch, start_ms, end_ms)
};

/// The parts of a device's step: the mean over the timed steps. All except `communication_hidden`,
/// which lies inside compute, add up to the step.
struct Breakdown {
  double compute = 0;
  double communication_exposed = 0;
  double communication_hidden = 0;
  double wait = 0;
  double bubble = 0;
  double optimizer = 0;
  double input_copy = 0;
  double other = 0;

  STRATAGEM_FIELDS(compute, communication_exposed, communication_hidden, wait, bubble, optimizer,
                   input_copy, other)
};

/// Fractions of the step.
struct Bubble {
  double measured = 0;
  double ideal = 0;  // closed form

  STRATAGEM_FIELDS(measured, ideal)
};

/// The memory of a device for one purpose.
struct CategoryMemory {
  std::int64_t peak = 0;
  std::int64_t at_peak = 0;             // at the peak of all purposes together
  std::optional<std::int64_t> formula;  // required value of `peak`; none without a formula

  STRATAGEM_FIELDS(peak, at_peak, formula)
};

struct DeviceRecord {
  int rank = 0;
  int device = 0;
  Breakdown breakdown_ms;
  Bubble bubble;
  std::int64_t peak_memory_bytes = 0;
  std::map<std::string, CategoryMemory> memory_bytes;  // by purpose; empty if unknown

  STRATAGEM_FIELDS(rank, device, breakdown_ms, bubble, peak_memory_bytes, memory_bytes)
};

/// The memory that a device holds over a step. All lists have a value for each moment, which is
/// valid until the next one.
struct MemoryCurve {
  int rank = 0;
  int device = 0;
  std::vector<double> ms;                                  // from the start of the step, ascending
  std::map<std::string, std::vector<std::int64_t>> bytes;  // by purpose; without unused ones
  std::vector<std::int64_t> most_bytes;                    // the most until the next moment

  STRATAGEM_FIELDS(rank, device, ms, bytes, most_bytes)
};

/// The calls and bytes of a rank in one kind of collective in one step.
struct CollectiveCount {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;

  STRATAGEM_FIELDS(calls, payload_bytes, wire_bytes)
};

/// The distance of a row's update from another computation of it.
struct Verdict {
  std::string oracle;  // the other computation
  std::string scope;   // sizes shrunk for it, or "full size"
  double max_relative_error = 0;
  double tolerance = 0;
  bool passed = false;
  std::string message;  // place of the largest error; empty if passed

  STRATAGEM_FIELDS(oracle, scope, max_relative_error, tolerance, passed, message)
};

/// The proof that a row computes the same update as one device, in float64. It passes if both
/// verdicts pass; the message is that of the failed one.
struct Verification : Verdict {
  /// The verdict in the number format and on the kernels that are timed; none if the first failed.
  std::optional<Verdict> own_arithmetic;

  STRATAGEM_FIELDS(oracle, scope, max_relative_error, tolerance, passed, message, own_arithmetic)
};

/// The comparison of a launch's own steps with those of one device.
struct Proof {
  std::string oracle;             // the other computation, and the number of steps
  double max_relative_error = 0;  // error of the comparison nearest to its bound
  double tolerance = 0;           // the bound of that comparison
  std::int64_t entries = 0;       // parameters, buffers and optimizer entries
  std::int64_t shown = 0;         // entries whose bound is below their change by the steps
  bool passed = false;
  std::string message;  // the first step and the first entry that differ; empty if passed

  /// Returns true if most entries would have shown a missing update.
  bool is_conclusive() const { return passed && 2 * shown >= entries; }

  STRATAGEM_FIELDS(oracle, max_relative_error, tolerance, entries, shown, passed, message)
};

struct Error {
  int rank = 0;
  std::string host;
  std::string last_action;
  std::string message;

  STRATAGEM_FIELDS(rank, host, last_action, message)
};

/// The kernel's counts on the row's own cores while its steps were timed. Times are sums over the
/// cores. The kernel counts by ticks, so each time may be wrong by some multiples of 10 ms.
struct OwnCores {
  std::vector<std::int64_t> cores = {};  // cores of all ranks, in their hosts' numbers
  double seconds = 0;                    // wall time of the longest rank
  double others_s = 0;                   // time of other programs, and of the kernel for them
  double stolen_s = 0;                   // time taken by the hypervisor for other guests
  std::int64_t page_faults = 0;          // page faults of the row's processes

  STRATAGEM_FIELDS(cores, seconds, others_s, stolen_s, page_faults)
};

/// The state of the machine during a launch.
struct Conditions {
  std::string started = {};                   // ISO 8601 with offset
  std::int64_t place = 0;                     // in the order of the run's launches, from 1 on
  std::vector<double> canary_before_ms = {};  // [device]: a fixed product, on all at once
  std::vector<double> canary_after_ms = {};   // the same, after the launch
  std::optional<double> other_processes_cores = {};  // cores busy with other programs, if known
  std::optional<OwnCores> own_cores = {};            // none on GPUs or shared cores

  STRATAGEM_FIELDS(started, place, canary_before_ms, canary_after_ms, other_processes_cores,
                   own_cores)
};

/// The basis of a prediction.
struct PredictionBasis {
  double age_s = 0;                    // age of the costs at the prediction
  std::string doubt;                   // why the costs are doubtful, or empty
  std::optional<double> low_ms = {};   // the step with the lower quartile of each cost
  std::optional<double> high_ms = {};  // the step with the upper quartile

  STRATAGEM_FIELDS(age_s, doubt, low_ms, high_ms)
};

/// The mark of a launch that something disturbed.
inline constexpr const char* disturbed_mark = "disturbed";

/// One launch of one row: fresh processes, warm-up, timed steps.
struct Repetition {
  int index = 0;
  std::vector<double> step_ms;                   // [step], the maximum over ranks
  std::vector<std::vector<double>> per_rank_ms;  // [rank][step]
  double cpu_ms = 0;                             // processor time a step, summed over ranks
  std::vector<DeviceRecord> devices;
  std::vector<TimelineEvent> timeline;  // events of the median step
  // Only a row's first launch has the two: during one more step after the timed ones, and
  // predicted.
  std::vector<MemoryCurve> memory_curve;  // [device]
  std::vector<MemoryCurve> predicted_memory_curve;
  std::optional<double> predicted_ms;
  std::optional<std::int64_t> predicted_peak_memory_bytes;  // peak of the fullest device
  std::optional<PredictionBasis> predicted_from;
  std::map<std::string, CollectiveCount> communication;
  std::optional<std::string> kernels;  // kernels that computed; none on GPUs
  double flops_per_step = 0;
  std::optional<double> mfu;
  std::vector<double> loss;  // [step]
  std::optional<Verification> verification;
  std::optional<Proof> proof;
  std::optional<Error> error;
  Conditions conditions;
  std::vector<std::string> marks;          // "shared", "oversubscribed", "disturbed", ...
  std::map<std::string, double> counters;  // Google Benchmark's: further numbers of this launch

  STRATAGEM_FIELDS(index, step_ms, per_rank_ms, cpu_ms, devices, timeline, memory_curve,
                   predicted_memory_curve, predicted_ms, predicted_peak_memory_bytes,
                   predicted_from, communication, kernels, flops_per_step, mfu, loss, verification,
                   proof, error, conditions, marks, counters)
};

/// One row of the table: a configuration and its launches.
struct Row {
  std::string name;
  std::string strategy;
  std::string model;
  std::string mesh;
  std::string workload;  // what any strategy computes; only rows of one workload are compared
  std::int64_t samples_per_step = 0;
  Values config;
  std::vector<Repetition> repetitions;
};

struct Metric {
  std::string name;
  std::string unit;
  std::string better;  // "lower", "higher", or empty if neither is
  bool deterministic = false;
};

/// A processor's cache, as Google Benchmark describes one.
struct Cache {
  std::string type;  // "Data", "Instruction", "Unified"
  int level = 0;
  std::int64_t size = 0;  // bytes
  int num_sharing = 0;    // logical processors that share it

  STRATAGEM_FIELDS(type, level, size, num_sharing)
};

/// The machine and software that made the whole file.
struct Context {
  std::string date;  // ISO 8601 with offset
  std::string host_name;
  std::string executable;
  int num_cpus = 0;
  double mhz_per_cpu = 0;
  bool cpu_scaling_enabled = false;
  std::vector<Cache> caches;  // caches of processor 0
  std::vector<double> load_average;
  std::string build_type;
  std::string version;
  std::string git_commit;
  std::string command_line;
  Values hardware;  // must match for a comparison
  Values software;  // reported
  Values calibration;
  Values noise;                           // state of the machine meanwhile
  std::vector<std::string> disturbances;  // causes of wrong times, with their remedies
  std::vector<Metric> metrics;
};

struct ResultFile {
  Context context;
  std::vector<Row> rows;
};

}  // namespace stratagem::reports
