// Compares the cores that a row asks for with the available ones, and marks unusual rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/config/config.h"

namespace stratagem::bench {

/// Returns the cores that a CPU row runs on: all available ones if it needs more.
std::vector<int> cores_of(const Config& config, const std::vector<int>& available);

/// Returns the cores of all rows, each once.
std::vector<int> cores_of(const std::vector<Config>& rows, const std::vector<int>& available);

/// Returns the cores of the row's device number `device`. Its id in `device_ids` decides, or
/// `usual_id` if the row has no ids. If there are too few cores, devices share them.
std::vector<int> cores_of_device(const Config& config, const std::vector<int>& available,
                                 std::int64_t device, std::int64_t usual_id);

/// Clears ids of devices that are the usual ones, 0 to devices - 1: one row has one name.
void leave_out_usual_ids(Config& config);

/// Throws std::invalid_argument if a CPU row needs more cores than there are and may not share
/// them. The line suggests what would fit.
void require_cores(const Config& config, std::size_t available);
/// Checks only `devices` of a row's devices, those that share the cores.
void require_cores(const Config& config, std::size_t available, std::int64_t devices);

/// Returns what makes `config` unusual: "oversubscribed", "shared", "straggler".
std::vector<std::string> marks_of(const Config& config, std::size_t available_cores);

/// Returns a note if a row's use of TF32 is not PyTorch's default, which is on for convolutions and
/// off for products of matrices; else an empty text.
std::string tf32_note(const Config& config, bool has_convolutions);

}  // namespace stratagem::bench
