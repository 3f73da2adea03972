// Copies several tensors from one rank by as few calls as possible.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "strategies/distributed/process_group.h"

namespace stratagem::distributed {

/// Groups tensors by type, because tensors of one type can be sent as one.
std::vector<std::vector<at::Tensor>> by_type(const std::vector<at::Tensor>& tensors);

/// Overwrites the tensors, all of one type, with those of the group's first rank.
void broadcast_from_root(const std::vector<at::Tensor>& tensors, ProcessGroup& group);

}  // namespace stratagem::distributed
