#include "strategies/stages/flat_group.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "strategies/backends/memory_accounting.h"

namespace stratagem::stages {
namespace {

using backends::MemoryCategory;
using backends::MemoryCategoryGuard;

FlatLayout layout_of(const std::vector<models::NamedTensor>& parameters, at::ScalarType format,
                     int shards) {
  std::vector<std::int64_t> sizes;
  for (const auto& [name, tensor] : parameters) sizes.push_back(tensor.numel());
  return {sizes, static_cast<std::int64_t>(c10::elementSize(format)), shards};
}

/// Frees a buffer's memory or allocates it anew; all views of the buffer share it. LibTorch rejects
/// a read of a tensor without memory.
void resize(const at::Tensor& buffer, std::size_t bytes) {
  c10::StorageImpl& storage = *buffer.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(bytes == 0 ? c10::DataPtr(nullptr, buffer.device())
                                         : storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

}  // namespace

FlatGroup::FlatGroup(Stage& stage, const FlatOptions& options)
    : stage_(stage),
      options_(options),
      parameters_(models::parameters(stage.layers())),
      layout_(layout_of(parameters_, options.format, shards())) {
  options_.sums.exchanged = options.reduce_scatter == "exchange" && options.ranks != nullptr &&
                            options.ranks->backend() == "gloo" &&
                            stage.device().kind == runtime::DeviceKind::cpu;
  if (!empty()) stage_.train(make_flat());
}

std::vector<models::NamedTensor> FlatGroup::make_flat() {
  const at::NoGradGuard no_gradient;
  const MemoryCategoryGuard made(MemoryCategory::parameters);
  const auto masters = parameters_.front().tensor.options().requires_grad(false);
  const at::Tensor flat = at::zeros({layout_.size()}, masters);
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    view_of(flat, index).copy_(parameters_[index].tensor.detach());
  }
  whole_ = flat.to(options_.format, /*non_blocking=*/false, /*copy=*/options_.sums.mixed);
  bytes_ = whole_.nbytes();
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    parameters_[index].tensor.set_data(view_of(whole_, index));
  }
  shard_ = own_shard_of(flat);
  sent_ = own_shard_of(whole_);
  if (!keeps_parameters()) {
    sent_ = sent_.clone();
    resize(whole_, 0);
  }
  if (!options_.sums.mixed) {
    shard_ = sent_;
  } else if (shards() > 1) {
    shard_ = shard_.clone();
  }
  // The optimizer keeps the master values beside the parameters that layers use.
  if (options_.sums.mixed) backends::retag(shard_, MemoryCategory::optimizer);
  return {{"", shard_}};
}

at::Tensor FlatGroup::own_shard_of(const at::Tensor& whole) const {
  const Range range = layout_.shard(own());
  return whole.narrow(0, range.start, range.count);
}

at::Tensor FlatGroup::view_of(const at::Tensor& flat, std::size_t parameter) const {
  const Range& range = layout_.parameters()[parameter];
  const at::Tensor& like = parameters_[parameter].tensor;
  return flat.narrow(0, range.start, range.count).as_strided(like.sizes(), like.strides());
}

void FlatGroup::unshard() {
  const MemoryCategoryGuard communication(MemoryCategory::communication);
  if (!keeps_parameters()) resize(whole_, bytes_);
  gather_ = options_.ranks->all_gather(whole_, sent_);
}

distributed::TransferPointer FlatGroup::wait_for_parameters() {
  gather_->wait();
  // Values derived from a parameter and kept must be remade once it has changed, but not if a step
  // gathers the same values again: autograd would refuse the backward pass.
  if (std::exchange(updated_, false)) {
    for (const auto& [name, tensor] : parameters_) tensor.unsafeGetTensorImpl()->bump_version();
  }
  return std::exchange(gather_, nullptr);
}

void FlatGroup::reshard() { resize(whole_, 0); }

void FlatGroup::publish() {
  if (empty()) return;
  const at::NoGradGuard no_gradient;
  if (options_.sums.mixed) sent_.copy_(shard_);
  updated_ = true;
  if (is_sharded()) return;
  updated_ = false;
  for (const auto& [name, tensor] : parameters_) tensor.unsafeGetTensorImpl()->bump_version();
}

/// Gloo's thread keeps a summed tensor until it runs again, on a busy core in the middle of the
/// next step, so that two gradients would take memory. A gradient that is part of a lasting buffer
/// stays.
void FlatGroup::before_forward() {
  if (empty()) return;
  const at::Tensor& gradient = shard_.grad();
  if (!stage_.gradients_are_old() || !gradient.defined()) return;
  if (gradient.storage().nbytes() == gradient.nbytes()) resize(gradient, 0);
}

/// Drops old gradients, so that autograd makes a step's first ones as usual, with the same bits.
void FlatGroup::before_backward() {
  if (empty() || !std::exchange(gradients_are_old_, false)) return;
  for (const auto& [name, tensor] : parameters_) at::Tensor(tensor).mutable_grad().reset();
}

/// In the layers' format the gradients become views of the buffer, to which later passes add
/// directly.
void FlatGroup::after_backward(std::int64_t micro_batches) {
  if (empty()) return;
  const at::NoGradGuard no_gradient;
  const bool in_master = !is_sharded() || options_.sums.master_is_scattered(micro_batches);
  const at::TensorOptions options = in_master ? shard_.options() : sent_.options();
  at::Tensor& sum = is_sharded() ? whole_gradient_ : shard_.mutable_grad();
  const bool first = is_sharded() ? std::exchange(sum_is_old_, false) : !sum.defined();
  if (sum.defined() && sum.dtype() != options.dtype()) sum.reset();  // from a batch of another size
  if (!sum.defined()) {
    const MemoryCategoryGuard made(keeps_gradients() ? MemoryCategory::gradients
                                                     : MemoryCategory::communication);
    sum = empty_buffer(options);
  }
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    at::Tensor& gradient = parameters_[index].tensor.mutable_grad();
    if (gradient.defined() && gradient.is_alias_of(sum)) continue;
    const at::Tensor place = view_of(sum, index);
    if (!gradient.defined()) {
      if (first) place.zero_();  // an earlier pass has taken it
    } else if (first) {
      place.copy_(gradient);
    } else {
      place.add_(gradient);
    }
    gradient = in_master ? at::Tensor() : place;
  }
}

/// Returns a buffer with zeros in the gaps between parameters.
at::Tensor FlatGroup::empty_buffer(const at::TensorOptions& options) const {
  at::Tensor buffer = at::empty({layout_.size()}, options);
  for (const Range& gap : layout_.gaps()) buffer.narrow(0, gap.start, gap.count).zero_();
  return buffer;
}

std::vector<at::Tensor> FlatGroup::gradients_of(const std::vector<at::Tensor>& parameters) const {
  if (empty()) return {};
  const at::Tensor& sum = is_sharded() ? whole_gradient_ : shard_.grad();
  std::vector<at::Tensor> gradients;
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const auto is_this = [&](const at::Tensor& other) {
      return other.is_same(parameters_[index].tensor);
    };
    if (std::ranges::any_of(parameters, is_this)) gradients.push_back(view_of(sum, index));
  }
  return gradients;
}

void FlatGroup::reduce_scatter(std::int64_t micro_batches) {
  const at::NoGradGuard no_gradient;
  gradients_are_old_ = true;
  sum_is_old_ = true;
  scatter_.whole = whole_gradient_;
  if (options_.sums.sums_in_place(micro_batches)) {
    scatter_.shard = own_shard_of(whole_gradient_);
  } else {
    const MemoryCategoryGuard communication(MemoryCategory::communication);
    scatter_.shard =
        at::empty({layout_.shard_size()}, rounds_sums() ? sent_.options() : shard_.options());
  }
  if (!keeps_gradients()) {
    for (const auto& [name, tensor] : parameters_) at::Tensor(tensor).mutable_grad().reset();
    whole_gradient_.reset();
  }
  scatter_.transfer =
      options_.ranks->reduce_scatter(scatter_.shard, scatter_.whole, options_.reduce_scatter);
}

distributed::TransferPointer FlatGroup::wait_for_gradients() {
  const at::NoGradGuard no_gradient;
  const Scatter scattered = std::exchange(scatter_, {});
  scattered.transfer->wait();
  at::Tensor& sum = shard_.mutable_grad();
  if (scattered.shard.is_alias_of(scattered.whole)) {
    // Gradients without an update are not finite, nor are sums with them: see Stage::update().
    if (sum.defined()) scattered.shard.fill_(std::numeric_limits<double>::quiet_NaN());
    sum = scattered.shard;
  } else if (sum.defined()) {
    sum.add_(scattered.shard);
  } else {
    sum = scattered.shard.to(shard_.scalar_type());
    backends::retag(sum, MemoryCategory::gradients);
  }
  return scattered.transfer;
}

/// Returns the format of a sum over copies in flight.
at::ScalarType FlatGroup::sent_format() const {
  if (options_.compressed) return at::kHalf;
  return rounds_sums() ? sent_.scalar_type() : shard_.scalar_type();
}

void FlatGroup::all_reduce() {
  const at::NoGradGuard no_gradient;
  const MemoryCategoryGuard communication(MemoryCategory::communication);
  const at::Tensor sent = shard_.grad().to(sent_format());
  sum_ = {.sent = sent, .transfer = options_.copies->all_reduce(sent)};
}

distributed::TransferPointer FlatGroup::wait_for_sum() {
  const at::NoGradGuard no_gradient;
  const Sum sum = std::exchange(sum_, {});
  sum.transfer->wait();
  if (!sum.sent.is_same(shard_.grad())) shard_.grad().copy_(sum.sent);
  return sum.transfer;
}

at::Tensor FlatGroup::squared_gradient_norm() const {
  const at::NoGradGuard no_gradient;
  if (empty()) return at::zeros({}, at::kDouble);
  std::vector<at::Tensor> parts;
  for (std::size_t index = 0; index < parameters_.size() && shard_.grad().defined(); ++index) {
    const Range part = counted_part_of(index);
    if (part.count > 0) parts.push_back(shard_.grad().narrow(0, part.start, part.count));
  }
  return parts.empty() ? at::zeros({}, at::TensorOptions(whole_.device()).dtype(at::kDouble))
                       : at::stack(at::_foreach_norm(parts)).to(at::kDouble).square().sum();
}

/// Returns what this rank counts of a parameter, in its shard.
Range FlatGroup::counted_part_of(std::size_t parameter) const {
  Range part = layout_.part_of(parameter, own());
  if (!stage_.counted || part.count == 0) return part;
  const auto found = std::ranges::find_if(*stage_.counted, [&](const auto& counted) {
    return counted.parameter.is_same(parameters_[parameter].tensor);
  });
  if (found == stage_.counted->end()) return {};
  const std::int64_t before =  // the parameter's elements in earlier shards
      layout_.shard(own()).start + part.start - layout_.parameters()[parameter].start;
  part.count = std::clamp<std::int64_t>(found->elements - before, 0, part.count);
  return part;
}

std::string FlatGroup::not_finite() const {
  for (std::size_t index = 0; index < parameters_.size() && shard_.grad().defined(); ++index) {
    const Range part = layout_.part_of(index, own());
    const at::Tensor own = shard_.grad().narrow(0, part.start, part.count);
    if (!own.isfinite().all().item<bool>()) return parameters_[index].name;
  }
  return {};
}

strategies::StateBytes FlatGroup::state_bytes(std::int64_t micro_batches) const {
  if (empty()) return {};
  const auto bytes = [](const at::Tensor& tensor) {
    return static_cast<std::int64_t>(tensor.nbytes());
  };
  strategies::StateBytes held;
  held.parameters = keeps_parameters() ? static_cast<std::int64_t>(bytes_) : bytes(sent_);
  if (is_sharded() && keeps_gradients()) held.gradients += whole_gradient_bytes(micro_batches);
  if (!is_sharded() || !options_.sums.sums_in_place(micro_batches)) held.gradients += bytes(shard_);
  held.optimizer = models::state_bytes(stage_.optimizer().options(), shard_);
  if (options_.sums.mixed) held.optimizer += bytes(shard_);
  return held;
}

std::int64_t FlatGroup::whole_gradient_bytes(std::int64_t micro_batches) const {
  const at::Tensor& like = options_.sums.master_is_scattered(micro_batches) ? shard_ : sent_;
  return layout_.size() * like.element_size();
}

distributed::CollectiveCount FlatGroup::gather_cost() const {
  return {.calls = 1, .payload_bytes = static_cast<std::int64_t>(bytes_) / shards()};
}

distributed::CollectiveCount FlatGroup::scatter_cost(std::int64_t micro_batches) const {
  return {.calls = 1, .payload_bytes = whole_gradient_bytes(micro_batches)};
}

distributed::CollectiveCount FlatGroup::all_reduce_cost() const {
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(sent_format()));
  return {.calls = 1, .payload_bytes = layout_.shard_size() * bytes};
}

}  // namespace stratagem::stages
