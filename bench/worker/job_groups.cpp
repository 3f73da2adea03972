#include "bench/worker/job_groups.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "bench/config/placement.h"
#include "strategies/backends/backend.h"
#include "strategies/runtime/cpu_device.h"

namespace stratagem::bench {
namespace {

at::Tensor element_on(const runtime::Device& device) {
  return at::zeros({1}, at::TensorOptions(backends::torch_device(device.description())));
}

/// Makes groups whose threads run on the cores of one device.
class Factory {
 public:
  Factory(const Config& config, distributed::RankContext& ranks)
      : ranks_(ranks),
        options_{.interface_name = config.interface == "auto" ? "" : config.interface,
                 .timeout = to_milliseconds(config.timeout)},
        backend_(backend_of(config)) {}

  /// Returns a connected group: NCCL connects at the first call, which belongs to no step.
  std::unique_ptr<distributed::ProcessGroup> make(const std::string& name, std::vector<int> members,
                                                  runtime::Device& device) const {
    const auto& cores = device.description().cores;
    if (!cores.empty()) runtime::pin_this_thread(cores);
    auto group = ranks_.make_group(name, std::move(members), backend_, device, options_);
    group->all_reduce(element_on(device))->wait();
    return group;
  }

 private:
  distributed::RankContext& ranks_;
  distributed::BackendOptions options_;
  distributed::Backend backend_;
};

/// Returns the ranks of which `holds` is true.
std::vector<int> those(std::vector<int> ranks, const std::function<bool(int)>& holds) {
  std::erase_if(ranks, [&](int rank) { return !holds(rank); });
  return ranks;
}

/// Two devices of a replica's pipeline: the first hands its stage's results to the second.
struct Passage {
  int from;
  int to;
};

/// Returns one passage for each pair of ranks of `each` devices, in the order of the stages: the
/// passages to an earlier rank, or to a later one.
std::vector<Passage> passages(const std::vector<int>& device_of_stage, int each, bool to_earlier) {
  std::vector<Passage> found;
  std::set<std::pair<int, int>> ranks;
  for (std::size_t stage = 1; stage < device_of_stage.size(); ++stage) {
    const Passage passage{.from = device_of_stage[stage - 1], .to = device_of_stage[stage]};
    const int sender = passage.from / each;
    const int receiver = passage.to / each;
    if (sender == receiver || (receiver < sender) != to_earlier) continue;
    if (ranks.emplace(sender, receiver).second) found.push_back(passage);
  }
  return found;
}

/// Sends one element over each passage and back, from the devices that will send and receive there.
/// NCCL connects two ranks at their first exchange, and may wait for the whole GPU then: it must
/// not wait after a receive that waits for the other side.
void greet(distributed::ProcessGroup& activations, distributed::ProcessGroup& gradients,
           runtime::DeviceSpan devices, const std::vector<Passage>& passages) {
  const int each = static_cast<int>(devices.size());
  for (const auto& [from, to] : passages) {
    const bool sends = activations.rank() == from / each;
    if (!sends && activations.rank() != to / each) continue;
    const int other = sends ? to / each : from / each;
    const at::Tensor element =
        element_on(*devices[static_cast<std::size_t>((sends ? from : to) % each)]);
    (sends ? activations.send(element, other) : activations.receive(element, other))->wait();
    (sends ? gradients.receive(element, other) : gradients.send(element, other))->wait();
  }
}

}  // namespace

JobGroups::JobGroups(const Config& config, Placement placement, const TaskContext& context,
                     runtime::DeviceSpan devices)
    : placement_(std::move(placement)) {
  if (context.ranks == nullptr) return;
  const AbortOnException abort_on_exception(*this);
  const int rank = context.ranks->info().rank;
  const Factory factory(config, *context.ranks);
  std::vector<int> everyone(static_cast<std::size_t>(placement_.ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  all_ = factory.make("all", everyone, *devices.front());
  const int copies = static_cast<int>(config.replicas_of_shards);
  const std::vector<int> replicas = placement_.group(rank, {"data", "context"});
  const auto shards_with = [&](int other) {
    return placement_.shard_group_of(other, copies) == placement_.shard_group_of(rank, copies);
  };
  const auto has_the_same_shard = [&](int other) {
    const int each = placement_.replicas() / copies;
    return placement_.replica_of(other) % each == placement_.replica_of(rank) % each &&
           placement_.coordinate(other, "context") == placement_.coordinate(rank, "context");
  };
  for (std::size_t index = 0; index < devices.size() && replicas.size() > 1; ++index) {
    const auto make = [&](const char* name, std::vector<int> members) {
      return factory.make(fmt::format("{} of device {}", name, index), std::move(members),
                          *devices[index]);
    };
    data_.push_back(make("data", replicas));
    if (copies == 1) continue;
    shards_.push_back(make("shards", those(replicas, shards_with)));
    copies_.push_back(make("copies", those(replicas, has_the_same_shard)));
  }
  if (placement_.pipeline_ranks() > 1) {
    const std::vector<int> members = placement_.group(rank, {"pipeline"});
    activations_ = factory.make("activations", members, *devices.front());
    gradients_ = factory.make("gradients", members, *devices.back());
    const std::vector<int> stages = plan_of(config).of_stages.device_of_stage;
    const int each = placement_.devices_per_rank();
    greet(*activations_, *gradients_, devices, passages(stages, each, /*to_earlier=*/false));
    const auto around = passages(stages, each, /*to_earlier=*/true);
    if (!around.empty()) {
      activations_around_ = factory.make("activations around", members, *devices.front());
      gradients_around_ = factory.make("gradients around", members, *devices.back());
      greet(*activations_around_, *gradients_around_, devices, around);
    }
  }
  if (placement_.tensor_ranks() > 1) {
    tensor_ = factory.make("tensor", placement_.group(rank, {"tensor"}), *devices.front());
  }
  if (placement_.context_ranks() > 1) {
    context_ = factory.make("context", placement_.group(rank, {"context"}), *devices.front());
  }
  const std::vector<int> with_gradients = sharded_state(config) == "none"
                                              ? placement_.group(rank, {"pipeline", "tensor"})
                                              : those(everyone, shards_with);
  const strategies::PlanRequest request = plan_request(config);
  if (request.needs_norm && strategies::sums_norms_over_ranks(request)) {
    norm_ = factory.make("norm", with_gradients, *devices.front());
  }
}

void JobGroups::abort() const {
  for (distributed::ProcessGroup* group : groups()) {
    try {
      group->abort();
    } catch (const runtime::CommunicationError&) {
      continue;  // only the first error counts
    }
  }
}

AbortOnException::~AbortOnException() {
  if (std::uncaught_exceptions() > exceptions_at_start_) groups_.abort();
}

strategies::RankGroups JobGroups::view() const {
  strategies::RankGroups view;
  if (!all_) return view;
  view.all = all_.get();
  view.replica = placement_.replica_of(all_->rank());
  view.replicas = placement_.replicas();
  for (const GroupPointer& group : data_) view.data.push_back(group.get());
  for (const GroupPointer& group : shards_) view.shards.push_back(group.get());
  for (const GroupPointer& group : copies_) view.copies.push_back(group.get());
  view.activations = activations_.get();
  view.gradients = gradients_.get();
  view.activations_around = activations_around_.get();
  view.gradients_around = gradients_around_.get();
  view.tensor = tensor_.get();
  view.context = context_.get();
  view.norm = norm_.get();
  return view;
}

void JobGroups::barrier() const {
  if (all_) all_->barrier();
}

distributed::CommunicationCounts JobGroups::counts() const {
  distributed::CommunicationCounts total;
  for (const distributed::ProcessGroup* group : groups()) add(total, group->counts());
  return total;
}

void JobGroups::reset_counts() const {
  for (distributed::ProcessGroup* group : groups()) group->reset_counts();
}

std::vector<distributed::ProcessGroup*> JobGroups::groups() const {
  std::vector<distributed::ProcessGroup*> present;
  for (const GroupPointer* group : {&all_, &activations_, &gradients_, &activations_around_,
                                    &gradients_around_, &tensor_, &context_, &norm_}) {
    if (*group) present.push_back(group->get());
  }
  for (const auto* of_devices : {&data_, &shards_, &copies_}) {
    for (const GroupPointer& group : *of_devices) present.push_back(group.get());
  }
  return present;
}

}  // namespace stratagem::bench
