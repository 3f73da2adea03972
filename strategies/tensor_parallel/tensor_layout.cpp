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

/// Adds the piece of a slice as pieces of its views, one after the other in the slice.
void add_parts(const strategies::StatePiece& piece, const std::vector<at::Tensor>& views,
               strategies::StatePieces& all) {
  std::int64_t start = 0;  // of the view, in the slice
  for (const at::Tensor& view : views) {
    const std::int64_t first = std::max(piece.start, start);
    const std::int64_t end = std::min(piece.start + piece.values.numel(), start + view.numel());
    if (first < end) {
      strategies::StatePiece part = piece;
      part.values = piece.values.narrow(0, first - piece.start, end - first);
      part.slice = view;
      part.start = first - start;
      all.push_back(std::move(part));
    }
    start += view.numel();
  }
}

/// Returns the rows of a gradient that are summed: the common ones, or all.
at::Tensor summed_rows(const at::Tensor& gradient, const CommonPart& common) {
  return common.exists() ? gradient.narrow(0, common.own, gradient.size(0) - common.own) : gradient;
}

/// Returns what all ranks add up: the rows of every unit, of which a rank has one, or all rows.
at::Tensor addend(const at::Tensor& rows, const CommonPart& common) {
  if (!common.exists()) return rows.flatten();
  at::Tensor of_units = at::zeros({common.units, rows.numel()}, rows.options());
  of_units[common.unit].copy_(rows.flatten());
  return of_units.flatten();
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
    if (found == sharded_.end()) {
      if (counts()) own.push_back(std::move(piece));
      continue;
    }
    if (!piece.slice.is_contiguous()) {
      throw std::logic_error("a sharded layer's \"" + piece.name + "\" is not contiguous");
    }
    piece.sizes = whole_sizes_.at(found->first);
    auto views = views_of_slice(at::empty(piece.sizes, piece.slice.options()), found->second,
                                group_.rank(), group_.size());
    // The first of the ranks with a common part has it in the whole state.
    if (common_part_of(found->first).place > 0) views.pop_back();
    add_parts(piece, views, own);
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

CommonPart TensorLayout::common_part_of(const std::string& parameter) const {
  const auto found = sharded_.find(parameter);
  if (found == sharded_.end()) return {};
  const auto dimension = static_cast<std::size_t>(found->second.dimension);
  return tensor_parallel::common_part_of(whole_sizes_.at(parameter).at(dimension), found->second,
                                         group_.rank(), group_.size());
}

TensorLayout::Partial TensorLayout::partial(const models::LayerList& layers) const {
  Partial found;
  for (const auto& [name, tensor] : models::parameters(layers)) {
    const bool is_whole = !sharded_.contains(name);
    const CommonPart common = common_part_of(name);
    if (is_whole ? layout_ != Layout::sequence : !common.exists()) continue;
    found.parameters.push_back(tensor);
    found.common.push_back(common);
  }
  return found;
}

std::vector<models::CountedGradient> TensorLayout::counted(const models::LayerList& layers) const {
  std::vector<models::CountedGradient> gradients;
  for (const auto& [name, tensor] : models::parameters(layers)) {
    if (!counts() && !sharded_.contains(name)) continue;
    const CommonPart common = common_part_of(name);
    const bool is_repeated = common.place > 0;
    gradients.push_back(
        {tensor, is_repeated ? common.own * tensor.numel() / tensor.size(0) : tensor.numel()});
  }
  return gradients;
}

const std::vector<at::Tensor>& TensorLayout::partial(int stage, const models::LayerList& layers) {
  const auto [found, is_new] = partial_.try_emplace(stage);
  if (is_new) found->second = partial(layers);  // only once, because names are long
  return found->second.parameters;
}

void TensorLayout::reduce_gradients(int stage, const std::vector<at::Tensor>& gradients,
                                    at::ScalarType format) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_gradient;
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const std::vector<CommonPart>& common = partial_.at(stage).common;
  std::vector<at::Tensor> flat;
  for (std::size_t index = 0; index < gradients.size(); ++index) {
    flat.push_back(addend(summed_rows(gradients[index], common[index]), common[index]));
  }
  const at::Tensor all = at::cat(flat).to(format);
  group_.ranks().all_reduce(all)->wait();
  std::int64_t start = 0;
  for (std::size_t index = 0; index < gradients.size(); ++index) {
    const at::Tensor own = summed_rows(gradients[index], common[index]);
    own.copy_(
        all.narrow(0, start + common[index].unit * own.numel(), own.numel()).view(own.sizes()));
    start += common[index].units * own.numel();
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
  const Partial of = partial(layers);
  for (std::size_t index = 0; index < of.parameters.size(); ++index) {
    const CommonPart& common = of.common[index];
    const at::Tensor& parameter = of.parameters[index];  // perhaps without memory
    const std::int64_t rows = common.exists() ? parameter.size(0) - common.own : parameter.size(0);
    elements += common.units * rows * (parameter.numel() / parameter.size(0));
  }
  if (elements == 0) return {};
  return {{"all_reduce", {.calls = 1, .payload_bytes = elements * element_bytes}}};
}

}  // namespace stratagem::tensor_parallel
