// A process group of which one rank is there, to see what it does by itself: what the others would
// send is a copy of what it has.
#pragma once

#include <memory>
#include <string>

#include "strategies/distributed/process_group.h"

namespace stratagem::bench {

/// Of `size` ranks the first, for tensors of `device`. Every call has ended when it returns; sums
/// are of as many copies as there are ranks, or, where the library sums, of one.
std::unique_ptr<distributed::ProcessGroup> without_the_others(const std::string& name, int size,
                                                              distributed::Backend backend,
                                                              runtime::Device& device);

}  // namespace stratagem::bench
