#include "strategies/data_parallel/replica.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/tensor_broadcast.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::data_parallel {
namespace {

using strategies::StrategyOptions;

constexpr double bytes_per_mebibyte = 1024.0 * 1024.0;

std::vector<at::Tensor> tensors_of(const std::vector<models::NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& entry : named) tensors.push_back(entry.tensor);
  return tensors;
}

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// Caps of the first bucket, which is small so that the first transfer starts early, and of the
/// others. Without overlap one bucket takes everything.
std::vector<std::size_t> bucket_caps(const StrategyOptions& options,
                                     const std::vector<at::Tensor>& parameters) {
  if (!options.overlap) {
    const auto all = static_cast<std::size_t>(bytes_of(parameters));
    return {all, all};
  }
  const auto cap = static_cast<std::size_t>(options.bucket_mb * bytes_per_mebibyte);
  return {std::min<std::size_t>(c10d::kDefaultFirstBucketBytes, cap), cap};
}

using BucketIndices = std::vector<std::vector<std::size_t>>;

BucketIndices assign_buckets(const std::vector<at::Tensor>& tensors,
                             const std::vector<std::size_t>& caps) {
  return std::get<0>(c10d::compute_bucket_assignment_by_size(tensors, caps));
}

bool in_half_precision(const StrategyOptions& options) { return options.compression == "fp16"; }

std::int64_t payload_bytes_of(const at::Tensor& tensor, const StrategyOptions& options) {
  const std::int64_t size = in_half_precision(options) ? static_cast<std::int64_t>(sizeof(at::Half))
                                                       : tensor.element_size();
  return tensor.numel() * size;
}

/// [parameter]: how much of the backward pass is over when its layer's is.
std::vector<double> readiness(const models::LayerList& layers, models::Shape shape,
                              bool first_stage) {
  std::vector<double> backward;
  for (const auto& layer : layers) {
    const models::LayerFlops flops = layer->flops(shape);
    const bool needs_input_gradient = !first_stage || !backward.empty();
    backward.push_back(flops.backward_weight + (needs_input_gradient ? flops.backward_input : 0));
    shape = layer->output_shape(shape);
  }
  const double all = std::accumulate(backward.begin(), backward.end(), 0.0);
  std::vector<double> ready;
  double before = all;  // the pass begins with the last layer
  for (std::size_t index = 0; index < layers.size(); ++index) {
    for (std::size_t count = layers[index]->parameters().size(); count > 0; --count) {
      ready.push_back(all > 0 ? before / all : 1);
    }
    before -= backward[index];
  }
  return ready;
}

}  // namespace

std::vector<PlannedBucket> plan_buckets(const models::LayerList& layers, const models::Shape& input,
                                        bool first_stage, const StrategyOptions& options) {
  const std::vector<at::Tensor> parameters = tensors_of(models::parameters(layers));
  std::vector<double> ready = readiness(layers, input, first_stage);
  std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  std::ranges::reverse(ready);
  std::vector<PlannedBucket> plan;
  if (parameters.empty()) return plan;
  for (const auto& members : assign_buckets(reversed, bucket_caps(options, parameters))) {
    PlannedBucket bucket{.bytes = 0, .ready = 0};
    for (const std::size_t index : members) {
      bucket.bytes += payload_bytes_of(reversed[index], options);
      bucket.ready = std::max(bucket.ready, ready[index]);
    }
    // Without overlap the pass ends first.
    plan.push_back(options.overlap ? bucket : PlannedBucket{bucket.bytes, 1.0});
  }
  std::ranges::sort(plan, {}, &PlannedBucket::ready);
  return plan;
}

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

Replica::Replica(const models::LayerList& layers, distributed::ProcessGroup& group,
                 const strategies::StrategyOptions& options)
    : group_(group),
      options_(options),
      parameters_(tensors_of(models::parameters(layers))),
      buffers_(distributed::by_type(tensors_of(models::buffers(layers)))) {
  for (const auto& tensors : distributed::by_type(parameters_)) {
    distributed::broadcast_from_root(tensors, group_);
  }
  broadcast_buffers();
  if (parameters_.empty()) return;  // a stage of pooling, say
  const std::vector<std::size_t> caps = bucket_caps(options, parameters_);
  BucketIndices buckets = assign_buckets(parameters_, caps);
  std::ranges::reverse(buckets);  // gradients become ready from the last layer to the first
  reducer_ = std::make_unique<c10d::Reducer>(
      parameters_, std::move(buckets), group_.c10d(), std::vector<bool>(parameters_.size(), false),
      static_cast<std::int64_t>(caps[1]), /*find_unused_parameters=*/false,
      /*gradient_as_bucket_view=*/true, std::unordered_map<std::size_t, std::string>{},
      static_cast<std::int64_t>(caps[0]), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<std::int64_t>{});
  reducer_->register_comm_hook(std::make_unique<BucketHook>(*this));
  retag_buckets();
}

Replica::~Replica() = default;

void Replica::broadcast_buffers() {
  for (const auto& tensors : buffers_) distributed::broadcast_from_root(tensors, group_);
}

void Replica::before_last_backward() {
  if (!reducer_) return;
  reducer_->prepare_for_forward();
  try {
    if (reducer_->rebuild_buckets()) retag_buckets();  // once, when the ranks agree on the order
  } catch (const std::exception& error) {
    throw runtime::CommunicationError("rebuilding the buckets: " + runtime::first_line(error));
  }
  reducer_->prepare_for_backward({});
}

/// Gradients are views of them.
void Replica::retag_buckets() {
  for (const c10d::GradBucket& bucket : reducer_->get_grad_buckets(/*return_zero_tensors=*/false)) {
    backends::retag(bucket.getBuffer(), backends::MemoryCategory::gradients);
  }
}

void Replica::launch(const at::Tensor& gradients) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const at::Tensor sent = in_half_precision(options_) ? gradients.to(at::kHalf) : gradients;
  in_flight_.push_back({gradients, sent, group_.all_reduce(sent)});
}

BucketTransfers Replica::wait() {
  const c10::AutoGradMode no_gradient(false);
  BucketTransfers transfers;
  for (const Bucket& bucket : std::exchange(in_flight_, {})) {
    bucket.transfer->wait();
    if (in_half_precision(options_)) bucket.gradients.copy_(bucket.sent);
    transfers.push_back(bucket.transfer);
  }
  return transfers;
}

std::int64_t Replica::gradient_bytes() const { return bytes_of(parameters_); }

strategies::CommunicationCounts Replica::costs() const {
  strategies::CommunicationCounts costs;
  for (const auto& tensors : buffers_) {
    costs["broadcast"].calls += 1;
    costs["broadcast"].payload_bytes += bytes_of(tensors);
  }
  if (parameters_.empty()) return costs;
  std::vector<at::Tensor> by_readiness(parameters_.rbegin(), parameters_.rend());
  const auto buckets = assign_buckets(by_readiness, bucket_caps(options_, parameters_));
  std::int64_t bytes = 0;
  for (const auto& parameter : parameters_) bytes += payload_bytes_of(parameter, options_);
  costs["all_reduce"] = {static_cast<std::int64_t>(buckets.size()), bytes, 0};
  return costs;
}

}  // namespace stratagem::data_parallel
