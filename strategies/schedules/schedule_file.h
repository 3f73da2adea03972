// Schedules from files in the notation of torch.distributed.pipelining: a line for each rank, with
// its actions joined by commas, such as 0F0,0F1,0B0,0B1 (stage, kind, micro-batch).
#pragma once

#include <string>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {

/// Makes the schedule `name` of a file's text. F, I, W and B are its passes; sends, receives,
/// gathers, reductions and empty cells are skipped, because lower() and the strategies add their
/// own. "(0F1;1B0)OVERLAP_F_B" stands for its passes in order. The devices are those of the file,
/// and micro-batches beyond the row's are left out. Throws std::invalid_argument, in one line with
/// name and place, for other text, an order that is not valid, and later, from `generate`, for
/// another size.
ScheduleEntry read_schedule(const std::string& name, const std::string& text);

}  // namespace stratagem::schedules
