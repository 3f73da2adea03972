// Counts the ATen operators that some work calls, on all threads of the process.
//
// The count depends only on the code and the configuration, so it shows even on the noisiest
// machine whether a step does more than before. Counting costs time: it is done in a warm-up step.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>

namespace stratagem::bench {

/// Counts from its construction to its end, including operators inside others. A process has one at
/// a time: a second one throws std::logic_error.
class OperatorCount {
 public:
  OperatorCount();
  ~OperatorCount();
  OperatorCount(const OperatorCount&) = delete;
  OperatorCount& operator=(const OperatorCount&) = delete;

  /// Returns the calls so far; those in flight on other threads may be missing, so wait for the
  /// devices first.
  std::int64_t calls() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace stratagem::bench
