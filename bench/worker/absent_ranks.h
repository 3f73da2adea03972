// A process group with only one of its ranks, to measure what it does by itself: instead of the
// others' data it receives copies of its own.
#pragma once

#include <memory>
#include <string>

#include "strategies/distributed/process_group.h"

namespace stratagem::bench {

/// Returns the first of `size` ranks, for tensors of `device`. Every call has ended when it
/// returns. Sums are of one copy for each rank, or, if the library sums, of one.
std::unique_ptr<distributed::ProcessGroup> without_the_others(const std::string& name, int size,
                                                              distributed::Backend backend,
                                                              runtime::Device& device);

}  // namespace stratagem::bench
