// Runs ATen's and our version of the same work alternately, so that a drift affects both.
#pragma once

#include <benchmark/benchmark.h>

namespace stratagem::bench {

/// `seconds_of(own)` runs the work once, by ours or by ATen's, and returns its time. The row's time
/// is ours; counters are milliseconds of ATen's, and atens_over_ours.
template <class SecondsOf>
void time_by_turns(benchmark::State& state, const SecondsOf& seconds_of) {
  seconds_of(false);
  seconds_of(true);
  double atens = 0;
  double ours = 0;
  for (auto iteration : state) {
    atens += seconds_of(false);
    const double one = seconds_of(true);
    ours += one;
    state.SetIterationTime(one);
  }
  state.counters["aten_ms"] = atens / static_cast<double>(state.iterations()) * 1e3;
  state.counters["atens_over_ours"] = atens / ours;
}

}  // namespace stratagem::bench
