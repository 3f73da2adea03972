// results.json: Google Benchmark's JSON, with Stratagem's fields beside its own.
//
// Every repetition is an entry of run_type "iteration"; Google Benchmark's aggregates follow if a
// row has two or more good repetitions. real_time is the mean of step_ms. A failed repetition has
// error_occurred and error_message, and no part in the aggregates. A row's first repetition has its
// `stratagem.summary`: the summary of all of them by reports/row_summary.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/record.h"

namespace stratagem::reports {

inline constexpr const char* results_schema = "stratagem/1";

/// Throws std::logic_error naming a number that is NaN or infinite, or a repetition that has
/// neither steps nor an error.
nlohmann::ordered_json results_json(const ResultFile& results);

/// Writes results_json() as text, whole or not at all; "-" is the standard output. Throws
/// std::system_error if the path cannot be written.
void write_results(const std::string& path, const ResultFile& results);

}  // namespace stratagem::reports
