// Counts the ATen operators that a stretch of work calls, on all threads of the process.
//
// The count follows from the code and the configuration alone, so it tells on the noisiest machine
// whether a step does more than it did. Counting costs time: it is done in a warm-up step.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>

namespace stratagem::bench {

/// Counts from its construction to its end, operators that others call inside included. One at a
/// time in a process: a second one throws std::logic_error.
class OperatorCount {
 public:
  OperatorCount();
  ~OperatorCount();
  OperatorCount(const OperatorCount&) = delete;
  OperatorCount& operator=(const OperatorCount&) = delete;

  /// The calls so far; those that are in flight on other threads may be missing, so wait for the
  /// devices first.
  std::int64_t calls() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace stratagem::bench
