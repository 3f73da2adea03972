#include "strategies/distributed/rank_order_sum.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace stratagem::distributed {
namespace {

/// The block of a running sum: 256 KiB of float32, which stay in a core's L2 cache while the parts
/// are added.
constexpr std::int64_t block_elements = 64 * 1024;

bool is_of_16_bits(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

void sum_block(at::Tensor output, const std::vector<at::Tensor>& parts) {
  at::add_out(output, parts[0], parts[1]);
  for (std::size_t part = 2; part < parts.size(); ++part) output.add_(parts[part]);
}

void sum_block_in_float(const at::Tensor& output, const std::vector<at::Tensor>& parts) {
  at::Tensor sum = output.scalar_type() == at::kFloat
                       ? output
                       : at::empty(output.sizes(), output.options().dtype(at::kFloat));
  sum.copy_(parts[0]);
  for (std::size_t part = 1; part < parts.size(); ++part) sum.add_(parts[part]);
  if (!sum.is_same(output)) output.copy_(sum);
}

}  // namespace

bool holds_sum_of(const at::Tensor& output, const at::Tensor& part) {
  return output.scalar_type() == part.scalar_type() ||
         (output.scalar_type() == at::kFloat && is_of_16_bits(part));
}

void sum_in_rank_order(const at::Tensor& output, const std::vector<at::Tensor>& parts) {
  if (parts.size() == 1) {
    output.copy_(parts.front());
    return;
  }
  const bool in_float = is_of_16_bits(parts.front());
  const std::int64_t elements = output.numel();
  const bool one_pass = parts.size() == 2 && !in_float;
  const std::int64_t step = one_pass ? std::max<std::int64_t>(elements, 1) : block_elements;
  for (std::int64_t begin = 0; begin < elements; begin += step) {
    const std::int64_t count = std::min(step, elements - begin);
    std::vector<at::Tensor> block;
    block.reserve(parts.size());
    for (const at::Tensor& part : parts) block.push_back(part.narrow(0, begin, count));
    const at::Tensor sum = output.narrow(0, begin, count);
    if (in_float) {
      sum_block_in_float(sum, block);
    } else {
      sum_block(sum, block);
    }
  }
}

}  // namespace stratagem::distributed
