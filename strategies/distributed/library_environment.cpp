#include "strategies/distributed/library_environment.h"

namespace stratagem::distributed {

std::vector<std::pair<std::string, std::string>> library_environment(
    const std::string& interface_name, bool over_nccl) {
  std::vector<std::pair<std::string, std::string>> variables{
      // c10d records the last collectives for its own diagnosis in one table of the process.
      // Threads of two groups write to it without a lock and crash it: 0 turns it off.
      {"TORCH_FR_BUFFER_SIZE", "0"},
      // c10d's watchdogs end the process if a collective fails or hangs. The worker has its own
      // limit, after which it aborts the groups and reports the error.
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
      {"TORCH_NCCL_ENABLE_MONITORING", "0"},
  };
  if (!interface_name.empty()) variables.emplace_back("NCCL_SOCKET_IFNAME", interface_name);
  // By default a kernel's first launch loads it, which may wait for everything that the GPU runs.
  // An NCCL receive runs until the other rank sends, which may need that kernel's result first.
  if (over_nccl) variables.emplace_back("CUDA_MODULE_LOADING", "EAGER");
  return variables;
}

}  // namespace stratagem::distributed
