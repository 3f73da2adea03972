// The cores that a row asks for, against those that there are, and what sets it apart from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/config/config.h"

namespace stratagem::bench {

/// The cores that a CPU row runs on; with --oversubscribe, as many of them as there are.
std::vector<int> cores_of(const Config& config, const std::vector<int>& available);

/// Those of all rows, each once.
std::vector<int> cores_of(const std::vector<Config>& rows, const std::vector<int>& available);

/// Returns the cores of the row's device number `device`. Its id in `device_ids` decides, or
/// `usual_id` where the row names no ids. Where there are too few cores, devices share them.
std::vector<int> cores_of_device(const Config& config, const std::vector<int>& available,
                                 std::int64_t device, std::int64_t usual_id);

/// Leaves out the ids of devices that are the usual ones, 0 to devices - 1: one name for one row.
void leave_out_usual_ids(Config& config);

/// Throws std::invalid_argument when a CPU row needs more cores than there are and may not share
/// them. The line says what would fit.
void require_cores(const Config& config, std::size_t available);
/// The same for `devices` of a row's devices, those that share the cores.
void require_cores(const Config& config, std::size_t available, std::int64_t devices);

/// What sets the rows of `config` apart from an ordinary measurement: "oversubscribed", "shared".
std::vector<std::string> marks_of(const Config& config, std::size_t available_cores);

/// Where a row's use of TF32 is not PyTorch's default, which is on for convolutions and off for
/// products of matrices; else empty.
std::string tf32_note(const Config& config, bool has_convolutions);

}  // namespace stratagem::bench
