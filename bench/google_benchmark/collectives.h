// The rows of bench_collectives: each is one collective at one message size.
//
// Sizes and bandwidths are those of nccl-tests (doc/PERFORMANCE.md there): a size is the largest
// buffer that a rank holds; the algorithm bandwidth is size over time, and the bus bandwidth what
// each link must carry for that, whatever the number of ranks, so that it can be compared with the
// hardware's peak.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/config/config.h"
#include "bench/launch/job.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Returns all_reduce, reduce_scatter, reduce_scatter_library, all_gather, broadcast, reduce,
/// gather, scatter, all_to_all, rotate, send.
const std::vector<std::string>& collective_names();
/// Returns the collectives that differ on the row's device and backend: the library's own
/// reduce-scatter is one of them only over Gloo on CPUs.
std::vector<std::string> distinct_collectives(const Config& config);

/// Returns bus bandwidth over algorithm bandwidth. Throws std::invalid_argument for other names.
double bus_factor(std::string_view collective, int ranks);

/// Returns 1024 for "1K"; K, M and G are powers of 1024. Throws std::invalid_argument that begins
/// with `where`.
std::int64_t parse_bytes(std::string_view text, const std::string& where);
/// Returns "64 KiB" for 65536.
std::string bytes_text(std::int64_t bytes);

/// Returns `low` to `high`, both included, each `factor` times the one before.
std::vector<std::int64_t> message_sizes(std::int64_t low, std::int64_t high, std::int64_t factor);

/// Returns "all_reduce/gloo/ranks:2/bytes:1024".
std::string collective_row_name(const std::string& collective, const Config& config,
                                std::int64_t bytes);

/// Returns a row without repetitions.
reports::Row collective_row(const std::string& collective, const Config& config,
                            std::int64_t bytes);

/// Returns one launch of the row: the times of a call, with the bandwidths of their median.
reports::Repetition collective_repetition(const std::string& collective, int ranks, int index,
                                          const MessageTimes& message);

}  // namespace stratagem::bench
