// The bytes that a step of DataParallelStrategy moves, by formula.
#include <c10/util/accumulate.h>

#include "strategies/data_parallel/data_parallel_strategy.h"
#include "strategies/data_parallel/layer_buckets.h"

namespace stratagem::data_parallel {

strategies::Costs DataParallelStrategy::costs(std::int64_t samples) const {
  const std::vector<schedules::Slice> chunks = batch_partition(samples);
  const auto others = static_cast<std::int64_t>(chunks.size()) - 1;
  strategies::Costs costs;
  for (const models::PassFlops& flops : flops_) {
    costs.flops += flops.total() * static_cast<double>(samples);
    if (request_.options.recompute == "selective") {
      costs.recomputed_flops += flops.remade * static_cast<double>(samples);
    }
  }
  for (const schedules::Action& pass : make_plan(samples).recomputed) {
    const Place place = place_of(pass);
    const bool enters_loss = loss_on_replicas_ && place.segment + 1 == segments();
    costs.recomputed_flops +=
        flops_.at(static_cast<std::size_t>(place.segment)).repeated(enters_loss) *
        static_cast<double>(chunks.at(static_cast<std::size_t>(place.replica)).count);
  }
  costs.stages = static_cast<int>(chunks.size()) + 1;
  costs.collectives = costs_of_copies(static_cast<int>(chunks.size()));
  costs.memory = memory_of_state(static_cast<int>(chunks.size()));
  if (others == 0) return costs;
  const std::int64_t output =
      c10::multiply_integers(output_shape_) *
      static_cast<std::int64_t>(c10::elementSize(workload_.options().dtype));
  for (const schedules::Slice& chunk : chunks) {
    if (loss_on_replicas_ || chunk.replica == output_device_) continue;
    for (const char* name : {"gather", "scatter_gradient"}) {
      costs.collectives[name] += {1, chunk.count * output, 0};
    }
  }
  if (scatter_from_first_ && !keep_inputs_) {
    const std::int64_t scattered = samples - chunks.front().count;
    costs.collectives["scatter"] = {others, scattered * bytes_of_an_input(), 0};
    if (loss_on_replicas_) {
      costs.collectives["scatter"] += {others, scattered * bytes_of_a_target(), 0};
    }
  }
  return costs;
}

/// Counts for each segment its parameters to, and their gradients from, all replicas but its
/// owner's, and the first replica's buffers to the others.
strategies::CommunicationCounts DataParallelStrategy::costs_of_copies(int replicas) const {
  strategies::CommunicationCounts costs;
  for (int segment = 0; segment < segments(); ++segment) {
    const auto& layers = replicas_.front().at(static_cast<std::size_t>(segment))->layers();
    const std::int64_t parameters = bytes_of(models::parameters(layers));
    const std::int64_t buffers = bytes_of(models::buffers(layers));
    for (int replica = 0; replica < replicas; ++replica) {
      const bool owns = owner_of(segment) == replica;
      if (!owns) costs["sum_gradients"] += {1, parameters, 0};
      const bool gets_buffers = replica > 0 && buffers > 0;
      if (owns && !gets_buffers) continue;
      costs["replicate"] += {1, (owns ? 0 : parameters) + (gets_buffers ? buffers : 0), 0};
    }
  }
  return costs;
}

/// Every device has all parameters, and the gradients of its own samples. The device that updates a
/// segment always has its gradients, and its optimizer state.
std::vector<strategies::StateBytes> DataParallelStrategy::memory_of_state(int replicas) const {
  std::vector<strategies::StateBytes> memory(replicas_.size());
  for (int device = 0; device < static_cast<int>(replicas_.size()); ++device) {
    for (int segment = 0; segment < segments(); ++segment) {
      const auto& stage = replicas_[static_cast<std::size_t>(device)];
      strategies::StateBytes own = stage[static_cast<std::size_t>(segment)]->state_bytes();
      const bool owns = owner_of(segment) == device;
      if (!owns) own.optimizer = 0;
      if (!owns && device >= replicas) own.gradients = 0;
      memory[static_cast<std::size_t>(device)] += own;
    }
  }
  return memory;
}

/// Returns the bytes of an input; tokens are indices.
std::int64_t DataParallelStrategy::bytes_of_an_input() const {
  const auto type =
      workload_.sequence_length() > 0 && workload_.entry().input_kind == models::InputKind::tokens
          ? at::kLong
          : workload_.options().dtype;
  return c10::multiply_integers(workload_.input_shape(1)) *
         static_cast<std::int64_t>(c10::elementSize(type));
}

/// Returns the bytes of a target: real numbers, a one-hot row, or one index a sample or token.
std::int64_t DataParallelStrategy::bytes_of_a_target() const {
  const models::WorkloadOptions& options = workload_.options();
  const bool tokens = workload_.entry().input_kind == models::InputKind::tokens;
  const bool rows = options.targets == models::Targets::real || options.loss == models::Loss::mse;
  if (!tokens && rows) {
    return workload_.classes() * static_cast<std::int64_t>(c10::elementSize(options.dtype));
  }
  const std::int64_t indices = tokens ? workload_.sequence_length() : 1;
  return indices * static_cast<std::int64_t>(c10::elementSize(at::kLong));
}

}  // namespace stratagem::data_parallel
