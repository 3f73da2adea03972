// A loop over rows that ATen's threads share.
//
// at::parallel_for is a template, and in a program built without OpenMP it runs only on the calling
// thread; with OpenMP the program might get its own threads beside ATen's. The loop of a
// TensorIterator is part of LibTorch and runs on LibTorch's threads.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace stratagem::models {

/// Returns the number of threads worth using for `rows` rows of `values` values each; 1 or more.
std::int64_t parallel_parts(std::int64_t rows, std::int64_t values);

/// Calls work(part, first, count) for each of `parts` parts of the rows, in order on one thread or
/// at the same time on several.
void for_each_part(std::int64_t parts, std::int64_t rows,
                   c10::function_ref<void(std::int64_t, std::int64_t, std::int64_t)> work);

/// Shares rows of `values` each among threads: work(first, count).
inline void for_rows(std::int64_t rows, std::int64_t values,
                     c10::function_ref<void(std::int64_t, std::int64_t)> work) {
  for_each_part(parallel_parts(rows, values), rows,
                [&](std::int64_t, std::int64_t first, std::int64_t count) { work(first, count); });
}

}  // namespace stratagem::models
