// Rows that the tests of a worker's tasks perform.
#pragma once

#include <string>

#include "bench/worker/tasks.h"

namespace stratagem::bench {

/// A row that trains in microseconds, also where there is one core only.
inline Config small_row(const std::string& strategy = "pipeline",
                        const std::string& model = "toy") {
  Config row;
  row.strategy = strategy;
  row.model = model;
  row.devices = strategy == "single" ? 1 : 2;
  row.oversubscribe = true;
  row.global_batch_size = 6;
  row.split_size = 2;
  row.image_size = 0;
  row.steps = 3;
  row.repetitions = 2;
  row.timeout = 60;
  if (strategy != "single") row.cut = {model == "toy" ? "net2" : "fc5"};
  return row;
}

/// A row as the command hands it to `check`: the cut is still open.
inline Config unchecked_row(const std::string& strategy, const std::string& model) {
  Config row = small_row(strategy, model);
  row.cut.clear();
  if (model.starts_with("resnet")) row.image_size = 64;
  return row;
}

inline CheckedRow checked(const Config& row) { return check({.configs = {row}}, {}).rows.at(0); }

inline reports::Repetition measured(const Config& row) {
  return measure({.config = row}, {}).repetitions.at(0);
}

}  // namespace stratagem::bench
