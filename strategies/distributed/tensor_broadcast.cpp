#include "strategies/distributed/tensor_broadcast.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <map>
#include <utility>

#include "strategies/backends/memory_accounting.h"

namespace stratagem::distributed {

std::vector<std::vector<at::Tensor>> by_type(const std::vector<at::Tensor>& tensors) {
  std::map<at::ScalarType, std::vector<at::Tensor>> sorted;
  for (const auto& tensor : tensors) sorted[tensor.scalar_type()].push_back(tensor);
  std::vector<std::vector<at::Tensor>> result;
  for (auto& [type, members] : sorted) result.push_back(std::move(members));
  return result;
}

void broadcast_from_root(const std::vector<at::Tensor>& tensors, ProcessGroup& group) {
  const c10::AutoGradMode no_gradient(false);
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  std::vector<at::Tensor> flat;
  for (const auto& tensor : tensors) flat.push_back(tensor.detach().reshape({-1}));
  const at::Tensor all = at::cat(flat);
  group.broadcast(all, 0)->wait();
  if (group.rank() == 0) return;
  std::int64_t start = 0;
  for (const auto& tensor : tensors) {
    tensor.detach().copy_(all.narrow(0, start, tensor.numel()).view(tensor.sizes()));
    start += tensor.numel();
  }
}

}  // namespace stratagem::distributed
