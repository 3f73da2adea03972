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

/// Returns true for "optimizer.exp_avg.fc1.weight" or "gradient.fc1.weight" and "fc1.weight".
bool is_about(const std::string& entry, const std::string& parameter) {
  return entry == parameter ||
         (entry.ends_with("." + parameter) &&
          (entry.starts_with("gradient.") || entry.starts_with("optimizer.")));
}

}  // namespace

TensorLayout::TensorLayout(const models::Workload& workload,
                           const std::vector<std::size_t>& boundaries,
                           const std::vector<int>& device_of_stage,
                           distributed::ProcessGroup& group, runtime::Device& device, Layout layout,
                           const layer_exchange::ExchangeOptions& options)
    : workload_(workload), group_(group, device, options), layout_(layout) {
  const models::Model model = workload.make_meta_model();
  const models::LayerSpan whole = model.layers;
  const bool predicts_tokens = workload.entry().input_kind == models::InputKind::tokens;
  std::vector<std::size_t> between_devices;
  for (std::size_t index = 0; index < boundaries.size(); ++index) {
    if (device_of_stage.at(index) == device_of_stage.at(index + 1)) continue;
    between_devices.push_back(boundaries[index]);
  }
  roles_ = linear_roles(model.layers, between_devices, group_.size(), predicts_tokens);
  for (std::size_t stage = 0; stage <= boundaries.size(); ++stage) {
    const std::size_t begin = stage == 0 ? 0 : boundaries[stage - 1];
    const bool last = stage == boundaries.size();
    const std::size_t end = last ? whole.size() : boundaries[stage];
    exchanges_.push_back(
        exchanges_of(whole.subspan(begin, end - begin), roles_, predicts_tokens, last));
  }
}

models::LayerList TensorLayout::shard(models::LayerList whole) {
  std::map<std::string, models::Shape> sizes;
  for (const auto& [name, tensor] : models::parameters(whole)) sizes[name] = tensor.sizes().vec();
  ShardedLayers sharded =
      tensor_parallel::shard(workload_, std::move(whole), roles_, group_, layout_);
  const std::lock_guard lock(mutex_);
  sharded_.merge(sharded.parameters);
  whole_sizes_.merge(sizes);
  return std::move(sharded.layers);
}

bool TensorLayout::keeps_logits_sharded() const {
  return std::ranges::any_of(roles_, [](const auto& of) { return of.second == LinearRole::head; });
}

/// Sharded logits take the format of a single device's.
at::Tensor TensorLayout::loss(const at::Tensor& output, const at::Tensor& targets, double weight) {
  if (!keeps_logits_sharded()) return workload_.loss(output, targets, weight);
  return vocab_parallel_cross_entropy(output, targets, weight, workload_.classes(),
                                      workload_.master_dtype(), group_);
}

at::Tensor TensorLayout::correct(const at::Tensor& output, const at::Tensor& targets) {
  if (!keeps_logits_sharded()) return workload_.correct(output, targets);
  return vocab_parallel_correct_predictions(output, targets, workload_.classes(), group_);
}

models::Shape TensorLayout::boundary(models::Shape whole) const {
  if (layout_ == Layout::sequence && whole.size() == 3) whole[sequence_dimension] /= group_.size();
  return whole;
}

std::int64_t TensorLayout::first_position(std::int64_t positions) const {
  return layout_ == Layout::sequence ? group_.rank() * (positions / group_.size()) : 0;
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
  if (is_new) found->second = replicated(layers);  // only once, because names are long
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

Communication TensorLayout::communication(int stage, const LayerInput& work) const {
  const ExchangeWay way{
      .layout = layout_, .keep_gathered = group_.options().keep_gathered, .ranks = group_.size()};
  return communication_of(exchanges_.at(static_cast<std::size_t>(stage)), way, work);
}

Communication TensorLayout::reduction(const models::LayerList& layers,
                                      std::int64_t element_bytes) const {
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : replicated(layers)) elements += parameter.numel();
  if (elements == 0) return {};
  return {{"all_reduce", {.calls = 1, .payload_bytes = elements * element_bytes}}};
}

}  // namespace stratagem::tensor_parallel
