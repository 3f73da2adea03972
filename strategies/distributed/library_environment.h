// What c10d, NCCL and CUDA read from the environment of a worker. It is written before the process
// has a second thread: writing it beside one that reads it is undefined.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stratagem::distributed {

/// Names and values. `interface_name` is that of the network between ranks; empty: NCCL's choice.
/// `over_nccl`: the ranks exchange over NCCL.
std::vector<std::pair<std::string, std::string>> library_environment(
    const std::string& interface_name, bool over_nccl);

}  // namespace stratagem::distributed
