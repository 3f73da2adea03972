#include "strategies/distributed/state_pieces.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

namespace stratagem::distributed {
namespace {

using strategies::StatePiece;
using strategies::StatePieces;

at::TensorOptions without_memory(at::ScalarType type) {
  return at::TensorOptions(at::kMeta).dtype(type);
}

/// Returns the dimensions in descending order of their strides.
std::vector<std::int64_t> order_in_memory(const at::Tensor& tensor) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(tensor.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::int64_t a, std::int64_t b) { return tensor.stride(a) > tensor.stride(b); });
  return order;
}

}  // namespace

StatePiece piece_of(std::string name, const at::Tensor& tensor) {
  const at::Tensor held = tensor.detach();
  const at::Tensor dense = held.is_non_overlapping_and_dense() ? held : held.contiguous();
  return run_of(std::move(name), dense, dense.permute(order_in_memory(dense)).reshape({-1}), 0);
}

/// A contiguous tensor's slice has its strides, also those of dimensions of size one.
StatePiece run_of(std::string name, const at::Tensor& like, at::Tensor values, std::int64_t start) {
  const at::TensorOptions options = without_memory(values.scalar_type());
  return {.name = std::move(name),
          .values = std::move(values),
          .slice = like.is_contiguous()
                       ? at::empty_strided(like.sizes(), like.strides(), options)
                       : at::empty(like.sizes(), options).permute(order_in_memory(like)),
          .start = start,
          .sizes = like.sizes().vec()};
}

std::string described(const StatePieces& pieces) {
  nlohmann::json all = nlohmann::json::array();
  for (const StatePiece& piece : pieces) {
    all.push_back({piece.name, static_cast<int>(piece.values.scalar_type()), piece.sizes,
                   piece.slice.sizes().vec(), piece.slice.strides().vec(),
                   piece.slice.storage_offset(), piece.start, piece.values.numel()});
  }
  return all.dump();
}

StatePieces from_description(const std::string& text) {
  using Numbers = std::vector<std::int64_t>;
  StatePieces pieces;
  for (const nlohmann::json& each : nlohmann::json::parse(text)) {
    const auto options = without_memory(static_cast<at::ScalarType>(each.at(1).get<int>()));
    const auto sizes = each.at(2).get<Numbers>();
    pieces.push_back({.name = each.at(0),
                      .values = at::empty({each.at(7).get<std::int64_t>()}, options),
                      .slice = at::empty(sizes, options)
                                   .as_strided(each.at(3).get<Numbers>(), each.at(4).get<Numbers>(),
                                               each.at(5).get<std::int64_t>()),
                      .start = each.at(6),
                      .sizes = sizes});
  }
  return pieces;
}

}  // namespace stratagem::distributed
