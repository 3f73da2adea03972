#include "models/cpu_kernels/parallel_rows.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/arange.h>

#include <algorithm>

namespace stratagem::models {

std::int64_t parallel_parts(std::int64_t rows, std::int64_t values) {
  const std::int64_t worthwhile = rows * values / at::internal::GRAIN_SIZE;
  return std::clamp<std::int64_t>(std::min(worthwhile, rows), 1, at::get_num_threads());
}

void for_each_part(std::int64_t parts, std::int64_t rows,
                   c10::function_ref<void(std::int64_t, std::int64_t, std::int64_t)> work) {
  const auto perform = [&](std::int64_t part) {
    const std::int64_t first = rows * part / parts;
    work(part, first, rows * (part + 1) / parts - first);
  };
  if (parts == 1) return perform(0);
  at::Tensor numbers = at::arange(parts, at::kLong);
  at::TensorIterator iterator = at::TensorIterator::nullary_op(numbers);
  const auto loop = [&](char** data, const std::int64_t* strides, std::int64_t count,
                        std::int64_t /*of one dimension*/) {
    for (std::int64_t index = 0; index < count; ++index) {
      perform(*reinterpret_cast<const std::int64_t*>(data[0] + index * strides[0]));
    }
  };
  iterator.for_each(loop, /*grain_size=*/1);
}

}  // namespace stratagem::models
