// What bench_collectives measures: one collective at one message size is a row.
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

/// all_reduce, reduce_scatter, reduce_scatter_library, all_gather, broadcast, reduce, gather,
/// scatter, all_to_all, send.
const std::vector<std::string>& collective_names();
/// Those that differ on the row's device and backend: the library's own reduce-scatter stands
/// beside ours where there is one, over Gloo on CPUs.
std::vector<std::string> distinct_collectives(const Config& config);

/// Bus bandwidth over algorithm bandwidth. Throws std::invalid_argument for another name.
double bus_factor(std::string_view collective, int ranks);

/// 1024 for "1K", also with K, M and G for powers of 1024. Throws std::invalid_argument that begins
/// with `where`.
std::int64_t parse_bytes(std::string_view text, const std::string& where);
/// "64 KiB".
std::string bytes_text(std::int64_t bytes);

/// From `low` to `high`, each `factor` times the one before; both ends are in it.
std::vector<std::int64_t> message_sizes(std::int64_t low, std::int64_t high, std::int64_t factor);

/// "all_reduce/gloo/ranks:2/bytes:1024".
std::string collective_row_name(const std::string& collective, const Config& config,
                                std::int64_t bytes);

/// A row without repetitions.
reports::Row collective_row(const std::string& collective, const Config& config,
                            std::int64_t bytes);

/// One launch of the row: the times of a call, with the bandwidths of their median.
reports::Repetition collective_repetition(const std::string& collective, int ranks, int index,
                                          const MessageTimes& message);

}  // namespace stratagem::bench
