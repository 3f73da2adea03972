// The construction of a StagedStrategy: stages on their devices, flat groups and mailboxes.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/distributed/tensor_broadcast.h"
#include "strategies/stages/layer_groups.h"
#include "strategies/stages/partition.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

void StagedStrategy::require_groups(const strategies::PlanRequest& request) const {
  const std::size_t devices = devices_.size();
  if (request.arrangement.copies() > 1 && groups_.data.size() != devices) {
    throw std::logic_error("copies of layers need a process group for each device");
  }
  if (strategies::copies_of(request) > 1 && groups_.copies.size() != devices) {
    throw std::logic_error("copies of shards need a process group for each device");
  }
}

void StagedStrategy::make_stages(const strategies::StrategyContext& context,
                                 tensor_parallel::Layout layout) {
  models::Model model = workload_.make_meta_model();
  const strategies::PlanRequest request = plan_request(context);
  const bool has_groups = strategies::has_layer_groups(request);
  const bool has_flat = strategies::has_flat_groups(request);
  if (has_flat) require_groups(request);
  const std::vector<std::size_t> boundaries =
      has_groups ? groups_of(model.layers, request, workload_.options().width).boundaries
                 : boundaries_of(model.layers, context.options.cut);
  std::vector<models::LayerList> parts = models::cut(std::move(model.layers), boundaries);
  if (static_cast<int>(parts.size()) != stages_->count()) {
    throw std::invalid_argument(fmt::format("--cut: {} cuts make {} stages, expected {}",
                                            boundaries.size(), parts.size(), stages_->count()));
  }
  make_layout(context, layout, boundaries);
  note_shapes(parts);
  // Each device's own thread fills its layers, so that they lie in, and count as, its memory. Other
  // ranks' layers never have memory.
  for (const int index : stages_->list()) {
    stages_->device(index).enqueue(runtime::Stream::compute, "set-up", [&, this, index] {
      stages_->add(index, make_stage(index, std::move(parts[static_cast<std::size_t>(index)])));
      if (has_flat) stages_->add_group(index, make_group(index, context, layout));
    });
  }
  synchronize();
}

std::unique_ptr<Stage> StagedStrategy::make_stage(int index, models::LayerList layers) {
  const Stage::Position position{index == 0, is_last(index)};
  if (layout_) layers = layout_->shard(std::move(layers));
  if (context_) context_->place(layers);
  auto made = std::make_unique<Stage>(workload_, std::move(layers), position,
                                      stages_->device(index).description(),
                                      /*micro_batches=*/0);
  made->keep_inputs = keep_inputs_;
  made->split_backward = split_backward_;
  made->remade_inputs = remade_inputs_;
  if (layout_) {
    made->counted = layout_->counted(made->layers());
    made->loss = [this](const at::Tensor& output, const at::Tensor& targets, double weight) {
      return layout_->loss(output, targets, weight);
    };
    made->correct = [this](const at::Tensor& output, const at::Tensor& targets) {
      return layout_->correct(output, targets);
    };
  }
  return made;
}

std::unique_ptr<FlatGroup> StagedStrategy::make_group(int index,
                                                      const strategies::StrategyContext& context,
                                                      tensor_parallel::Layout layout) {
  const std::size_t device = stages_->device_of(index);
  const auto& shards = groups_.shards.empty() ? groups_.data : groups_.shards;
  FlatOptions options{.format = workload_.options().dtype,
                      .sums = {.sharded = context.options.shard,
                               .mixed = workload_.options().mixed,
                               .in_master = strategies::reduces_in_float32(context.options),
                               .partial = groups_.tensor != nullptr &&
                                          (layout == tensor_parallel::Layout::sequence ||
                                           workload_.entry().is_copied_by(groups_.tensor->size()))},
                      .reduce_scatter = context.options.reduce_scatter,
                      .compressed = context.options.compression == "fp16"};
  if (options.sums.is_sharded()) options.ranks = shards.at(device);
  if (!groups_.copies.empty()) options.copies = groups_.copies[device];
  return std::make_unique<FlatGroup>(stage(index), options);
}

void StagedStrategy::make_layout(const strategies::StrategyContext& context,
                                 tensor_parallel::Layout layout,
                                 const std::vector<std::size_t>& boundaries) {
  if (groups_.context != nullptr) {
    context_ = std::make_unique<context_parallel::ContextLayout>(
        workload_, boundaries, *groups_.context, *devices_.front(), context.options,
        groups_.tensor);
  }
  if (groups_.tensor == nullptr) return;
  layout_ = std::make_unique<tensor_parallel::TensorLayout>(
      workload_, boundaries, stages_->device_of_stage(), *groups_.tensor, *devices_.front(), layout,
      layer_exchange::ExchangeOptions{.overlap = context.options.async_reduce,
                                      .keep_gathered = context.options.keep_gathered,
                                      .reduce_scatter = context.options.reduce_scatter});
}

/// Notes the buffers that replicas copy from the first.
void StagedStrategy::note_buffers() {
  if (groups_.data.empty()) return;
  std::vector<std::vector<at::Tensor>> by_device(devices_.size());
  for (const int index : stages_->list()) {
    auto& all = by_device[stages_->device_of(index)];
    for (const auto& [name, tensor] : models::buffers(stage(index).layers())) all.push_back(tensor);
  }
  for (const auto& tensors : by_device) buffers_.push_back(distributed::by_type(tensors));
}

void StagedStrategy::open_mailboxes() {
  if (groups_.activations == nullptr) return;
  for (const auto& device : devices_) {
    mailboxes_.push_back(
        std::make_unique<Mailbox>(groups_, output_shapes_,
                                  at::TensorOptions(workload_.options().dtype)
                                      .device(backends::torch_device(device->description())),
                                  workload_.options().format));
  }
}

}  // namespace stratagem::stages
