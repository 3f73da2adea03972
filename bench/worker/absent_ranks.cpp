#include "bench/worker/absent_ranks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <numeric>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "strategies/backends/backend.h"

namespace stratagem::bench {
namespace {

class EndedWork : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
    future->markCompleted();
    return future;
  }
};

class AbsentRanks : public c10d::Backend {
 public:
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  explicit AbsentRanks(int size) : c10d::Backend(/*rank=*/0, size) {}

  const std::string getBackendName() const override { return "absent_ranks"; }

  WorkPointer broadcast(Tensors& /*tensors*/, const c10d::BroadcastOptions& /*options*/) override {
    return ended();
  }
  WorkPointer allreduce(Tensors& /*tensors*/, const c10d::AllreduceOptions& /*options*/) override {
    return ended();
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& /*options*/) override {
    const at::NoGradGuard no_gradient;
    const at::Tensor parts = output.view({getSize(), -1});
    parts.narrow(0, 1, getSize() - 1).copy_(input.view({1, -1}));
    if (parts.data_ptr() != input.data_ptr()) parts[0].copy_(input.view(-1));
    return ended();
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& /*options*/) override {
    const at::NoGradGuard no_gradient;
    output.view(-1).copy_(input.view(-1).narrow(0, 0, output.numel()));
    return ended();
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& /*to*/,
                            std::vector<int64_t>& /*from*/,
                            const c10d::AllToAllOptions& /*options*/) override {
    const at::NoGradGuard no_gradient;
    output.copy_(input);
    return ended();
  }

 private:
  static WorkPointer ended() { return c10::make_intrusive<EndedWork>(); }
};

}  // namespace

std::unique_ptr<distributed::ProcessGroup> without_the_others(const std::string& name, int size,
                                                              distributed::Backend backend,
                                                              runtime::Device& device) {
  using c10d::ProcessGroup;
  auto group = c10::make_intrusive<ProcessGroup>(/*rank=*/0, size);
  const c10::DeviceType where = backends::torch_device(device.description()).type();
  group->setBackend(where, ProcessGroup::BackendType::CUSTOM,
                    c10::make_intrusive<AbsentRanks>(size));
  group->setDefaultBackend(ProcessGroup::BackendType::CUSTOM);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<distributed::ProcessGroup>(name, std::move(ranks), backend, device,
                                                     std::move(group));
}

}  // namespace stratagem::bench
