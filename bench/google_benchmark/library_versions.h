// What differs between the releases of Google Benchmark, 1.6 to 1.9. What only some of them have is
// done without: default time units, reporters made from flags, and DoNotOptimize, which takes other
// kinds of values in each; what is timed here is called through other libraries or object files,
// which the compiler cannot see into.
#pragma once

namespace stratagem::bench {

/// Whether the library's `run` has no times: it failed. 1.8 renamed the member.
template <class Run>
bool was_skipped(const Run& run) {
  if constexpr (requires { run.error_occurred; }) {
    return run.error_occurred;
  } else {
    return run.skipped != decltype(run.skipped){};
  }
}

}  // namespace stratagem::bench
