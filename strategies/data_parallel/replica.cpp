#include "strategies/data_parallel/replica.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

namespace stratagem::data_parallel {
namespace {

constexpr double bytes_per_mebibyte = 1024.0 * 1024.0;

std::vector<at::Tensor> tensors_of(const std::vector<models::NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& entry : named) tensors.push_back(entry.tensor);
  return tensors;
}

/// Tensors of one type can travel as one.
std::vector<std::vector<at::Tensor>> by_type(const std::vector<at::Tensor>& tensors) {
  std::map<at::ScalarType, std::vector<at::Tensor>> sorted;
  for (const auto& tensor : tensors) sorted[tensor.scalar_type()].push_back(tensor);
  std::vector<std::vector<at::Tensor>> result;
  for (auto& [type, members] : sorted) result.push_back(std::move(members));
  return result;
}

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// Overwrites the tensors, which are of one type, with the first rank's.
void take_over(const std::vector<at::Tensor>& tensors, runtime::ProcessGroup& group) {
  const c10::AutoGradMode no_gradient(false);
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

/// Caps of the first bucket, which is small so that the first transfer starts early, and of the
/// others. Without overlap one bucket takes everything.
std::vector<std::size_t> bucket_caps(const ReplicaOptions& options,
                                     const std::vector<at::Tensor>& parameters) {
  if (!options.overlap) {
    const auto all = static_cast<std::size_t>(bytes_of(parameters));
    return {all, all};
  }
  const auto cap = static_cast<std::size_t>(options.bucket_mebibytes * bytes_per_mebibyte);
  return {std::min<std::size_t>(c10d::kDefaultFirstBucketBytes, cap), cap};
}

using BucketIndices = std::vector<std::vector<std::size_t>>;

BucketIndices assign_buckets(const std::vector<at::Tensor>& tensors,
                             const std::vector<std::size_t>& caps) {
  return std::get<0>(c10d::compute_bucket_assignment_by_size(tensors, caps));
}

}  // namespace

/// Hands full buckets to the replica instead of letting the Reducer wait for them.
class Replica::BucketHook final : public c10d::CommHookInterface {
 public:
  explicit BucketHook(Replica& replica) : replica_(replica) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor& buffer = bucket.getBuffer();
    replica_.launch(buffer);
    // The Reducer goes on at once: the gradients are views of the buffer, whose sum arrives there.
    std::vector<c10::Device> devices;
    if (!buffer.is_cpu()) devices.push_back(buffer.device());
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get(), devices);
    future->markCompleted(c10::IValue(buffer));
    return future;
  }

  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

 private:
  Replica& replica_;
};

Replica::Replica(const models::LayerList& layers, runtime::ProcessGroup& group,
                 const ReplicaOptions& options)
    : group_(group),
      options_(options),
      parameters_(tensors_of(models::parameters(layers))),
      buffers_(by_type(tensors_of(models::buffers(layers)))) {
  for (const auto& tensors : by_type(parameters_)) take_over(tensors, group_);
  broadcast_buffers();
  const std::vector<std::size_t> caps = bucket_caps(options_, parameters_);
  BucketIndices buckets = assign_buckets(parameters_, caps);
  std::ranges::reverse(buckets);  // gradients become ready from the last layer to the first
  reducer_ = std::make_unique<c10d::Reducer>(
      parameters_, std::move(buckets), group_.c10d(), std::vector<bool>(parameters_.size(), false),
      static_cast<std::int64_t>(caps[1]), /*find_unused_parameters=*/false,
      /*gradient_as_bucket_view=*/true, std::unordered_map<std::size_t, std::string>{},
      static_cast<std::int64_t>(caps[0]), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<std::int64_t>{});
  reducer_->register_comm_hook(std::make_unique<BucketHook>(*this));
}

Replica::~Replica() = default;

void Replica::broadcast_buffers() {
  for (const auto& tensors : buffers_) take_over(tensors, group_);
}

void Replica::before_last_backward() {
  reducer_->prepare_for_forward();
  try {
    reducer_->rebuild_buckets();  // the first time, the ranks agree on the order
  } catch (const std::exception& error) {
    throw runtime::CommunicationError("rebuilding the buckets: " + runtime::first_line_of(error));
  }
  reducer_->prepare_for_backward({});
}

void Replica::launch(at::Tensor bucket) { under_way_.push_back(group_.all_reduce(bucket)); }

Buckets Replica::wait() {
  for (const auto& transfer : under_way_) transfer->wait();
  return std::exchange(under_way_, {});
}

std::map<std::string, strategies::CollectiveCost> Replica::costs() const {
  std::map<std::string, strategies::CollectiveCost> costs;
  std::vector<at::Tensor> by_readiness(parameters_.rbegin(), parameters_.rend());
  const auto buckets = assign_buckets(by_readiness, bucket_caps(options_, parameters_));
  costs["all_reduce"] = {static_cast<std::int64_t>(buckets.size()), bytes_of(parameters_)};
  for (const auto& tensors : buffers_) {
    costs["broadcast"].calls += 1;
    costs["broadcast"].payload_bytes += bytes_of(tensors);
  }
  return costs;
}

}  // namespace stratagem::data_parallel
