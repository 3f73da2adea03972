// Hands measured rows to Google Benchmark: its loop replays their steps as manual time, so that its
// console and CSV reporters, aggregates and flags work on them as on any benchmark.
#pragma once

#include <string>
#include <vector>

#include "bench/google_benchmark/flags.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Prints the rows on standard output in the flags' format (console or csv; json is ours and
/// printed elsewhere), and returns them in `out_format` when that is console or csv.
std::string replay(const std::vector<reports::Row>& rows, const BenchmarkFlags& flags,
                   const std::string& program);

}  // namespace stratagem::bench
