// Schedules from files in the notation of torch.distributed.pipelining: a line for each rank, with
// its actions joined by commas, such as 0F0,0F1,0B0,0B1 (stage, kind, micro-batch); and pictures of
// orders that are not valid.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {

/// A schedule with this prefix is a file's: "csv:order.csv".
inline constexpr std::string_view order_prefix = "csv:";

/// Returns the compute order `name` of a file's text, which may deadlock or lack passes. F, I, W
/// and B are its passes; sends, receives, gathers, reductions and empty cells are skipped, because
/// lower() and the strategies add their own. "(0F1;1B0)OVERLAP_F_B" stands for its passes in order.
/// Throws std::invalid_argument, in one line with name and place, for other text.
Schedule read_order(const std::string& name, const std::string& text);

/// Makes a schedule of read_order(). The devices are those of the file, and micro-batches beyond
/// the row's are left out. Throws std::invalid_argument, in one line with the name, for an order
/// that is not valid, and later, from `generate`, for another size.
ScheduleEntry read_schedule(const std::string& name, const std::string& text);

/// The places at which an order is not valid.
struct OrderFaults {
  std::optional<Fault> fault = {};                  // the first one of the devices' lists
  std::vector<std::size_t> done = {};               // [device]: the number of passes that can run
  std::vector<std::optional<Action>> awaited = {};  // [device]: the next one waits for this pass

  bool is_valid() const;
};

OrderFaults faults_of(const Schedule& order);

/// Draws an order that is not valid, in lines of at most `width` columns with a device's passes,
/// and below them a line for the fault and for each device that waits:
///
///   device 0 | 0F0 [0B0]
///   device 1 | 1F0
///   device 1: 1B0 is missing
///   device 0 waits at 0B0 for 1B0 on device 1, which is not in the order
///
/// Brackets mark the faulty pass and those at which devices wait. A line that is too long shows the
/// passes around the first mark, or the last ones.
std::string order_picture(const Schedule& order, const OrderFaults& faults, int width);

}  // namespace stratagem::schedules
