// The environment variables of c10d, NCCL and CUDA in a worker. They are set before the process has
// a second thread, because setting them beside a thread that reads them is undefined.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stratagem::distributed {

/// Returns names and values. `interface_name` is that of the network between ranks; empty: NCCL's
/// choice. `over_nccl`: the ranks exchange over NCCL.
std::vector<std::pair<std::string, std::string>> library_environment(
    const std::string& interface_name, bool over_nccl);

}  // namespace stratagem::distributed
