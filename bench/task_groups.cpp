#include "bench/task_groups.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "strategies/runtime/backend.h"
#include "strategies/runtime/cpu_device.h"

namespace stratagem::bench {
namespace {

/// Makes groups whose threads run on the cores of one device.
class Factory {
 public:
  Factory(const Config& config, runtime::RankContext& ranks)
      : ranks_(ranks),
        options_{.interface_name = config.interface == "auto" ? "" : config.interface,
                 .timeout =
                     std::chrono::milliseconds(static_cast<std::int64_t>(config.timeout * 1000))} {
    const std::string usual = config.device == "cuda" ? "nccl" : "gloo";
    backend_ = config.backend == "auto" ? usual : config.backend;
  }

  std::unique_ptr<runtime::ProcessGroup> make(const std::string& name, std::vector<int> members,
                                              runtime::Device& device) const {
    const auto& cores = device.description().cores;
    if (!cores.empty()) runtime::pin_this_thread(cores);
    return ranks_.make_group(name, std::move(members), backend_, device, options_);
  }

 private:
  runtime::RankContext& ranks_;
  runtime::BackendOptions options_;
  std::string backend_;
};

/// One element to each neighbour and back. NCCL connects two ranks at their first exchange, and may
/// wait for the whole GPU then: not behind a receive that waits for the other side.
void greet_neighbours(runtime::ProcessGroup& activations, runtime::ProcessGroup& gradients,
                      runtime::DeviceSpan devices) {
  const int rank = activations.rank();
  const int last = activations.size() - 1;
  const auto element = [](const runtime::Device& device) {
    return at::zeros({1}, at::TensorOptions(runtime::torch_device(device.description())));
  };
  const at::Tensor front = element(*devices.front());
  const at::Tensor back = element(*devices.back());
  if (rank > 0) activations.receive(front, rank - 1, 0)->wait();
  if (rank < last) activations.send(front, rank + 1, 0)->wait();
  if (rank < last) gradients.receive(back, rank + 1, 0)->wait();
  if (rank > 0) gradients.send(back, rank - 1, 0)->wait();
}

}  // namespace

JobGroups::JobGroups(const Config& config, const TaskContext& context, runtime::DeviceSpan devices)
    : placement_(placement_of(config)) {
  if (context.ranks == nullptr) return;
  const int rank = context.ranks->place().rank;
  const Factory factory(config, *context.ranks);
  std::vector<int> everyone(static_cast<std::size_t>(placement_.ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  all_ = factory.make("all", everyone, *devices.front());
  if (placement_.replicas() > 1) {
    for (std::size_t index = 0; index < devices.size(); ++index) {
      data_.push_back(factory.make(fmt::format("data of device {}", index),
                                   placement_.data_group(rank), *devices[index]));
    }
  }
  if (placement_.pipeline_ranks() > 1) {
    const std::vector<int> members = placement_.pipeline_group(rank);
    activations_ = factory.make("activations", members, *devices.front());
    gradients_ = factory.make("gradients", members, *devices.back());
    greet_neighbours(*activations_, *gradients_, devices);
  }
  if (placement_.tensor_ranks() > 1) {
    tensor_ = factory.make("tensor", placement_.tensor_group(rank), *devices.front());
  }
}

strategies::RankGroups JobGroups::view() const {
  strategies::RankGroups view;
  if (!all_) return view;
  view.all = all_.get();
  view.replica = placement_.replica_of(all_->rank());
  view.replicas = placement_.replicas();
  for (const GroupPointer& group : data_) view.data.push_back(group.get());
  view.activations = activations_.get();
  view.gradients = gradients_.get();
  view.tensor = tensor_.get();
  return view;
}

void JobGroups::barrier() const {
  if (all_) all_->barrier();
}

runtime::CommunicationCounts JobGroups::counts() const {
  runtime::CommunicationCounts total;
  for (const runtime::ProcessGroup* group : groups()) {
    for (const auto& [collective, count] : group->counts()) {
      total[collective].calls += count.calls;
      total[collective].payload_bytes += count.payload_bytes;
      total[collective].wire_bytes += count.wire_bytes;
    }
  }
  return total;
}

void JobGroups::reset_counts() const {
  for (const GroupPointer* group : {&all_, &activations_, &gradients_, &tensor_}) {
    if (*group) (*group)->reset_counts();
  }
  for (const GroupPointer& group : data_) group->reset_counts();
}

std::vector<const runtime::ProcessGroup*> JobGroups::groups() const {
  std::vector<const runtime::ProcessGroup*> present;
  for (const GroupPointer* group : {&all_, &activations_, &gradients_, &tensor_}) {
    if (*group) present.push_back(group->get());
  }
  for (const GroupPointer& group : data_) present.push_back(group.get());
  return present;
}

}  // namespace stratagem::bench
