// A small results file that the tests of writers and of the table share.
#pragma once

#include <string>
#include <vector>

#include "reports/record.h"
#include "reports/statistics.h"

namespace stratagem::reports {

inline Verification passed_verification() {
  return {{"one device", "image 32, batch 16", 3e-13, 1e-9, true, ""},
          Verdict{"reference kernels", "full size", 3e-7, 4e-6, true, ""}};
}

/// Of a step of so many milliseconds, which its parts add up to.
inline DeviceRecord example_device(int device, double step_ms, Bubble bubble) {
  DeviceRecord record;
  record.device = device;
  record.bubble = bubble;
  Breakdown& parts = record.breakdown_ms;
  parts = {
      .bubble = bubble.measured * step_ms, .optimizer = step_ms / 100, .input_copy = step_ms / 200};
  parts.compute = step_ms - parts.bubble - parts.optimizer - parts.input_copy;
  record.peak_memory_bytes = (1200 + 100 * device) * std::int64_t{1024 * 1024};
  constexpr std::int64_t parameters = 100 * std::int64_t{1024 * 1024};
  record.memory_bytes = {
      {"activations",
       {.peak = record.peak_memory_bytes,
        .at_peak = record.peak_memory_bytes - parameters,
        .formula = {}}},
      {"parameters", {.peak = parameters, .at_peak = parameters, .formula = parameters}}};
  return record;
}

inline Repetition example_repetition(int index, std::vector<double> step_ms) {
  Repetition repetition;
  repetition.index = index;
  repetition.step_ms = step_ms;
  repetition.devices = {example_device(0, mean(step_ms), {.measured = 0.24, .ideal = 0.2}),
                        example_device(1, mean(step_ms), {.measured = 0.26, .ideal = 0.2})};
  repetition.per_rank_ms = {std::move(step_ms)};
  repetition.cpu_ms = 3000;
  repetition.timeline = {{0, "forward", 0, 0, 0.0, 10.5}, {1, "backward", 1, 3, 10.5, 30.0}};
  repetition.communication["all_reduce"] = {2, 1024, 2048};
  repetition.flops_per_step = 1.5e12;
  repetition.mfu = 0.61;
  repetition.loss = {0.25, 0.125};
  repetition.verification = passed_verification();
  return repetition;
}

inline Row example_row(const std::string& strategy, const std::string& rest, double step_ms,
                       std::int64_t cores = 1) {
  Row row;
  row.name = strategy + "/resnet50/" + rest;
  row.strategy = strategy;
  row.model = "resnet50";
  row.mesh = "pipeline=2";
  row.workload = "resnet50/batch:48/image_size:128";
  row.samples_per_step = 48;
  row.config = {{"strategy", strategy},
                {"model", "resnet50"},
                {"cores_per_device", cores},
                {"image_size", std::int64_t{128}},
                {"learning_rate", 0.001},
                {"split_size", std::monostate{}},
                {"verify", true}};
  for (const double offset : {-5, 5, -4, 4, -3, 3}) {
    row.repetitions.push_back(example_repetition(static_cast<int>(row.repetitions.size()),
                                                 {step_ms + offset - 0.5, step_ms + offset + 0.5}));
  }
  return row;
}

inline Row failed_row() {
  Row row = example_row("pipeline", "devices:2/batch:48/image:128/split:1/schedule:1f1b", 4700);
  Repetition failed;
  failed.index = 1;
  failed.error = Error{0, "host", "F3 s1 on device 1", "device 1 overran the limit of 120 s"};
  row.repetitions = {row.repetitions[0], failed};
  return row;
}

inline std::vector<Row> example_rows() {
  const std::string work = "devices:2/batch:48/image:128";
  std::vector<Row> rows = {example_row("single", "devices:1/batch:48/image:128", 2160),
                           example_row("single", "devices:1/batch:48/image:128/cores:2", 1335, 2),
                           example_row("model_parallel", work, 2195),
                           example_row("pipeline", work + "/split:12/schedule:1f1b", 1590),
                           example_row("pipeline", work + "/split:8/schedule:1f1b", 1593),
                           failed_row()};
  for (std::size_t index : {std::size_t{0}, std::size_t{1}}) {
    for (Repetition& repetition : rows[index].repetitions) {
      repetition.devices = {example_device(0, mean(repetition.step_ms), {})};
      for (TimelineEvent& event : repetition.timeline) event.device = event.stage = 0;
    }
  }
  for (Repetition& repetition : rows[3].repetitions) {
    repetition.predicted_ms = 1620;
  }
  rows[2].repetitions[1].marks = {"waited"};
  for (Repetition& repetition : rows[4].repetitions) repetition.verification.reset();
  return rows;
}

inline ResultFile example_results() {
  ResultFile results;
  results.context = {.date = "2026-01-02T03:04:05+00:00",
                     .host_name = "host",
                     .executable = "stratagem",
                     .num_cpus = 2,
                     .mhz_per_cpu = 2596.4,
                     .caches = {{.type = "Data", .level = 1, .size = 49152, .num_sharing = 2}},
                     .load_average = {0.5, 0.25, 0.125},
                     .build_type = "release",
                     .version = "0.1.0",
                     .git_commit = "0123456789ab",
                     .command_line = "stratagem run --preset cpu",
                     .hardware = {{"cpu_model", "example"}, {"cores", std::int64_t{2}}},
                     .software = {{"torch", "2.11.0"}},
                     .calibration = {{"gemm_gflops", 231.5}},
                     .noise = {{"governor", "none"}, {"stolen_fraction", 0.02}},
                     .disturbances = {"load: 0.50 in the last minute; measure later"},
                     .metrics = {{"step_ms", "ms", "lower", false}}};
  results.rows = example_rows();
  return results;
}

}  // namespace stratagem::reports
