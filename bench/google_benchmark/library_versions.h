// Covers the differences between the releases of Google Benchmark, 1.6 to 1.9. Uses no feature that
// only some of them have: default time units, reporters made from flags, and DoNotOptimize, which
// takes other kinds of values in each. Timed calls go through other libraries or object files,
// which the compiler cannot see into.
#pragma once

namespace stratagem::bench {

/// Returns whether the library's `run` failed and so has no times. 1.8 renamed the member.
template <class Run>
bool was_skipped(const Run& run) {
  if constexpr (requires { run.error_occurred; }) {
    return run.error_occurred;
  } else {
    return run.skipped != decltype(run.skipped){};
  }
}

}  // namespace stratagem::bench
