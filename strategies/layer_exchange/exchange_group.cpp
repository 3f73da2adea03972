#include "strategies/layer_exchange/exchange_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <stdexcept>

#include "strategies/backends/memory_accounting.h"

namespace stratagem::layer_exchange {
namespace {

std::int64_t part_of(const at::Tensor& tensor, std::int64_t dimension, int ranks) {
  if (tensor.size(dimension) % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("{} ranks do not divide a dimension of {}", ranks, tensor.size(dimension)));
  }
  return tensor.size(dimension) / ranks;
}

}  // namespace

at::Tensor PendingCollective::wait() {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  group_->finish(transfer_);
  return finish_ ? finish_(buffer_) : buffer_;
}

PendingCollective ExchangeGroup::all_reduce(at::Tensor tensor, distributed::Reduction reduction) {
  return {*this, group_.all_reduce(tensor, reduction), tensor};
}

// Both collectives join and cut along the first dimension, so the ranks are first: [rank, ...].
PendingCollective ExchangeGroup::all_gather(const at::Tensor& tensor, std::int64_t dimension) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  dimension = c10::maybe_wrap_dim(dimension, tensor.dim());
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape.insert(shape.begin(), size());
  const at::Tensor gathered = at::empty(shape, tensor.options());
  auto transfer = group_.all_gather(gathered.flatten(0, 1), tensor.contiguous());
  const auto join = [dimension](const at::Tensor& by_rank) {
    return by_rank.movedim(0, dimension).flatten(dimension, dimension + 1);
  };
  return {*this, std::move(transfer), gathered, join};
}

PendingCollective ExchangeGroup::reduce_scatter(const at::Tensor& tensor, std::int64_t dimension) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const std::int64_t part = part_of(tensor, dimension, size());
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape[static_cast<std::size_t>(dimension)] = part;
  const at::Tensor result = at::empty(shape, tensor.options());
  const at::Tensor by_rank =
      tensor.unflatten(dimension, {size(), part}).movedim(dimension, 0).contiguous();
  auto transfer = group_.reduce_scatter(result, by_rank.flatten(0, 1), options_.reduce_scatter);
  return {*this, std::move(transfer), result};
}

PendingCollective ExchangeGroup::all_to_all(const at::Tensor& parts) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const at::Tensor received = at::empty_like(parts);
  return {*this, group_.all_to_all(received, parts), received};
}

PendingCollective ExchangeGroup::rotate(const at::Tensor& tensor) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const at::Tensor received = at::empty_like(tensor);
  return {*this, group_.rotate(received, tensor), received};
}

at::Tensor ExchangeGroup::own_part(const at::Tensor& tensor, std::int64_t dimension) const {
  const std::int64_t part = part_of(tensor, dimension, size());
  return tensor.narrow(dimension, rank() * part, part);
}

void ExchangeGroup::finish(const distributed::TransferPointer& transfer) {
  const auto start = device_.stamp();
  transfer->wait();
  const std::lock_guard lock(mutex_);
  collectives_.push_back({transfer, start, device_.stamp()});
}

std::vector<LayerCollective> ExchangeGroup::take_collectives() {
  const std::lock_guard lock(mutex_);
  return std::exchange(collectives_, {});
}

}  // namespace stratagem::layer_exchange
