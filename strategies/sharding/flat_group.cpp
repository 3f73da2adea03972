#include "strategies/sharding/flat_group.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace stratagem::sharding {
namespace {

FlatLayout layout_of(const std::vector<models::NamedTensor>& parameters, int shards) {
  std::vector<std::int64_t> sizes;
  for (const auto& [name, tensor] : parameters) sizes.push_back(tensor.numel());
  const std::int64_t bytes = parameters.empty() ? 1 : parameters.front().tensor.element_size();
  return {sizes, bytes, shards};
}

/// Takes the memory of a buffer away, or gives it some; whoever shares the buffer shares this. A
/// tensor without memory cannot be read by mistake: LibTorch refuses.
void resize(const at::Tensor& buffer, std::size_t bytes) {
  c10::StorageImpl& storage = *buffer.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(bytes == 0 ? c10::DataPtr(nullptr, buffer.device())
                                         : storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

}  // namespace

FlatGroup::FlatGroup(stages::Stage& stage, distributed::ProcessGroup& shards,
                     schedules::Sharded sharded)
    : stage_(stage),
      group_(shards),
      sharded_(sharded),
      parameters_(models::parameters(stage.layers())),
      layout_(layout_of(parameters_, shards.size())) {
  if (!empty()) stage_.train(make_flat());
}

std::vector<models::NamedTensor> FlatGroup::make_flat() {
  const at::NoGradGuard no_gradient;
  whole_ = at::zeros({layout_.size()}, parameters_.front().tensor.options().requires_grad(false));
  bytes_ = whole_.nbytes();
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    at::Tensor& parameter = parameters_[index].tensor;
    const at::Tensor view = view_of(whole_, index);
    view.copy_(parameter.detach());
    parameter.set_data(view);
  }
  shard_ = own_shard_of(whole_);
  if (!keeps_parameters()) {
    shard_ = shard_.clone();
    resize(whole_, 0);
  }
  return {{"", shard_}};
}

at::Tensor FlatGroup::own_shard_of(const at::Tensor& whole) const {
  const Range own = layout_.shard(group_.rank());
  return whole.narrow(0, own.start, own.count);
}

at::Tensor FlatGroup::view_of(const at::Tensor& flat, std::size_t parameter) const {
  const Range& range = layout_.parameters()[parameter];
  const at::Tensor& like = parameters_[parameter].tensor;
  return flat.narrow(0, range.start, range.count).as_strided(like.sizes(), like.strides());
}

void FlatGroup::unshard() {
  if (!keeps_parameters()) resize(whole_, bytes_);
  gather_ = group_.all_gather(whole_, shard_);
}

distributed::TransferPointer FlatGroup::wait_for_parameters() {
  gather_->wait();
  // Whoever keeps something that was made from a parameter must learn that it has changed. Not
  // where a step gathers the same values again: autograd would refuse the backward pass.
  if (std::exchange(updated_, false)) {
    for (const auto& [name, tensor] : parameters_) tensor.unsafeGetTensorImpl()->bump_version();
  }
  return std::exchange(gather_, nullptr);
}

void FlatGroup::reshard() { resize(whole_, 0); }

void FlatGroup::before_backward() {
  if (empty() || !std::exchange(gradients_are_old_, false)) return;
  if (whole_gradient_.defined()) {
    // Gradients that no update has used stay: they are not finite, see Stage::update().
    if (!shard_.grad().defined()) whole_gradient_.zero_();
    return;
  }
  whole_gradient_ =
      at::zeros({layout_.size()}, parameters_.front().tensor.options().requires_grad(false));
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    parameters_[index].tensor.mutable_grad() = view_of(whole_gradient_, index);
  }
}

void FlatGroup::reduce_scatter() {
  const at::NoGradGuard no_gradient;
  gradients_are_old_ = true;
  scatter_.whole = whole_gradient_;
  if (keeps_gradients()) {
    scatter_.shard = own_shard_of(whole_gradient_);
  } else {
    scatter_.shard = at::empty({layout_.shard_size()}, whole_gradient_.options());
    for (const auto& [name, tensor] : parameters_) at::Tensor(tensor).mutable_grad().reset();
    whole_gradient_.reset();
  }
  scatter_.transfer = group_.reduce_scatter(scatter_.shard, scatter_.whole);
}

distributed::TransferPointer FlatGroup::wait_for_gradients() {
  const at::NoGradGuard no_gradient;
  const Scatter scattered = std::exchange(scatter_, {});
  scattered.transfer->wait();
  at::Tensor& sum = shard_.mutable_grad();
  if (sum.defined() && !keeps_gradients()) {
    sum.add_(scattered.shard);
  } else {
    sum = scattered.shard;
  }
  return scattered.transfer;
}

at::Tensor FlatGroup::squared_gradient_norm() const {
  const at::NoGradGuard no_gradient;
  if (empty()) return at::zeros({}, at::kDouble);
  std::vector<at::Tensor> parts;
  for (std::size_t index = 0; index < parameters_.size() && shard_.grad().defined(); ++index) {
    const auto is_this = [&](const at::Tensor& other) {
      return other.is_same(parameters_[index].tensor);
    };
    if (stage_.counted && std::ranges::none_of(*stage_.counted, is_this)) continue;
    const Range part = layout_.part_of(index, group_.rank());
    if (part.count > 0) parts.push_back(shard_.grad().narrow(0, part.start, part.count));
  }
  return parts.empty() ? at::zeros({}, at::TensorOptions(whole_.device()).dtype(at::kDouble))
                       : at::stack(at::_foreach_norm(parts)).to(at::kDouble).square().sum();
}

distributed::CollectiveCount FlatGroup::gather_cost() const {
  return {.calls = 1, .payload_bytes = static_cast<std::int64_t>(bytes_) / group_.size()};
}

distributed::CollectiveCount FlatGroup::scatter_cost() const {
  return {.calls = 1, .payload_bytes = static_cast<std::int64_t>(bytes_)};
}

}  // namespace stratagem::sharding
