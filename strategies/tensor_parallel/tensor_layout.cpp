#include "strategies/tensor_parallel/tensor_layout.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/tensor_parallel/vocabulary_parallel.h"

namespace stratagem::tensor_parallel {
namespace {

using strategies::StateDictionary;

/// "optimizer.exp_avg.fc1.weight" and "gradient.fc1.weight" are about "fc1.weight".
bool is_about(const std::string& entry, const std::string& parameter) {
  return entry == parameter ||
         (entry.ends_with("." + parameter) &&
          (entry.starts_with("gradient.") || entry.starts_with("optimizer.")));
}

}  // namespace

TensorLayout::TensorLayout(distributed::ProcessGroup& group, runtime::Device& device, Layout layout,
                           const ExchangeOptions& options)
    : group_(group, device, options), layout_(layout) {}

models::LayerList TensorLayout::shard(const models::Workload& workload, int stage,
                                      models::LayerList whole, bool last_stage) {
  std::map<std::string, models::Shape> sizes;
  for (const auto& [name, tensor] : models::parameters(whole)) sizes[name] = tensor.sizes().vec();
  ShardedLayers sharded =
      tensor_parallel::shard(workload, std::move(whole), group_, layout_, last_stage);
  const std::lock_guard lock(mutex_);
  sharded_.merge(sharded.parameters);
  whole_sizes_.merge(sizes);
  parallel_[stage] = sharded.parallel;
  if (last_stage) vocabulary_parallel_logits_ = sharded.ends_with_vocabulary_parallel_logits;
  return std::move(sharded.layers);
}

at::Tensor TensorLayout::loss(const models::Workload& workload, const at::Tensor& output,
                              const at::Tensor& targets, double weight) {
  if (!vocabulary_parallel_logits_) return workload.loss(output, targets, weight);
  return vocab_parallel_cross_entropy(output, targets, weight, group_);
}

at::Tensor TensorLayout::correct(const models::Workload& workload, const at::Tensor& output,
                                 const at::Tensor& targets) {
  if (!vocabulary_parallel_logits_) return workload.correct(output, targets);
  return vocab_parallel_correct_predictions(output, targets, group_);
}

models::Shape TensorLayout::boundary(models::Shape whole) const {
  if (layout_ == Layout::sequence && whole.size() == 3) whole[sequence_dimension] /= group_.size();
  return whole;
}

const ShardSpec* TensorLayout::shard_spec_of(const std::string& entry) const {
  for (const auto& [parameter, spec] : sharded_) {
    if (is_about(entry, parameter)) return &spec;
  }
  return nullptr;
}

StateDictionary TensorLayout::gather(const StateDictionary& slices, const at::Device& device) {
  std::vector<StateDictionary> by_rank = distributed::gather_states(slices, group_.ranks(), device);
  StateDictionary whole;
  for (const auto& [name, own] : slices) {
    const ShardSpec* spec = own.dim() > 0 ? shard_spec_of(name) : nullptr;
    if (spec == nullptr) {
      whole[name] = own;
      continue;
    }
    std::vector<at::Tensor> parts;
    for (StateDictionary& rank : by_rank) parts.push_back(std::move(rank.at(name)));
    whole[name] = assemble(parts, *spec);
  }
  return whole;
}

strategies::StatePieces TensorLayout::pieces_of_whole(strategies::StatePieces slices) const {
  strategies::StatePieces own;
  for (strategies::StatePiece& piece : slices) {
    const auto found = std::ranges::find_if(sharded_, [&](const auto& parameter) {
      return !piece.sizes.empty() && is_about(piece.name, parameter.first);
    });
    if (found != sharded_.end()) {
      if (!piece.slice.is_contiguous()) {
        throw std::logic_error("a sharded layer's \"" + piece.name + "\" is not contiguous");
      }
      piece.sizes = whole_sizes_.at(found->first);
      piece.slice = view_of_slice(at::empty(piece.sizes, piece.slice.options()), found->second,
                                  group_.rank(), group_.size());
    } else if (!counts()) {
      continue;
    }
    own.push_back(std::move(piece));
  }
  return own;
}

StateDictionary TensorLayout::slices(const StateDictionary& whole) const {
  StateDictionary own;
  for (const auto& [name, tensor] : whole) {
    const ShardSpec* spec = tensor.dim() > 0 ? shard_spec_of(name) : nullptr;
    own[name] = spec == nullptr ? tensor : slice_of(tensor, *spec, group_.rank(), group_.size());
  }
  return own;
}

std::vector<at::Tensor> TensorLayout::replicated(const models::LayerList& layers) const {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : models::parameters(layers)) {
    if (!sharded_.contains(name)) tensors.push_back(tensor);
  }
  return tensors;
}

std::vector<at::Tensor> TensorLayout::counted(const models::LayerList& layers) const {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : models::parameters(layers)) {
    if (counts() || sharded_.contains(name)) tensors.push_back(tensor);
  }
  return tensors;
}

const std::vector<at::Tensor>& TensorLayout::replicated(int stage,
                                                        const models::LayerList& layers) {
  const auto [found, is_new] = replicated_.try_emplace(stage);
  if (is_new) found->second = replicated(layers);  // once: names are long
  return found->second;
}

void TensorLayout::reduce_gradients(const std::vector<at::Tensor>& gradients,
                                    at::ScalarType format) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_gradient;
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  std::vector<at::Tensor> flat;
  for (const at::Tensor& gradient : gradients) flat.push_back(gradient.flatten());
  const at::Tensor all = at::cat(flat).to(format);
  group_.ranks().all_reduce(all)->wait();
  std::int64_t start = 0;
  for (const at::Tensor& gradient : gradients) {
    gradient.copy_(all.narrow(0, start, gradient.numel()).view(gradient.sizes()));
    start += gradient.numel();
  }
}

Communication TensorLayout::communication(int stage, LayerInput work, bool first_stage,
                                          bool last_stage) const {
  Communication total;
  work.input_needs_gradient = !first_stage;
  for (const ParallelLayer* layer : parallel_.at(stage)) {
    add(total, layer->communication(work));
    work.input_needs_gradient = true;
  }
  if (last_stage && vocabulary_parallel_logits_) {
    add(total, cross_entropy_communication(work.positions, work.element_bytes));
  }
  return total;
}

Communication TensorLayout::reduction(const models::LayerList& layers,
                                      std::int64_t element_bytes) const {
  Communication calls;
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : replicated(layers)) elements += parameter.numel();
  if (elements > 0) add_call(calls, "all_reduce", elements * element_bytes);
  return calls;
}

}  // namespace stratagem::tensor_parallel
