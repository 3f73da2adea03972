// Rows go to ATen's threads, each row once.
#include "models/cpu_kernels/parallel_rows.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "tests/models/single_thread.h"

namespace stratagem::models::parallel_rows_test {
namespace {

TEST(ParallelRows, EachThreadHasAPartAndEachRowIsInOne) {
  const SingleThread restores_their_number;
  at::set_num_threads(3);
  std::vector<std::vector<int>> rows(3, std::vector<int>(10));
  std::vector<std::thread::id> threads(3);
  for_each_part(3, 10, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    const auto own = static_cast<std::size_t>(part);
    threads[own] = std::this_thread::get_id();
    for (std::int64_t row = first; row < first + count; ++row) {
      ++rows[own][static_cast<std::size_t>(row)];
    }
  });
  EXPECT_EQ(rows[0], (std::vector<int>{1, 1, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(rows[1], (std::vector<int>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(rows[2], (std::vector<int>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), 3U);
}

TEST(ParallelRows, FewValuesAreNotWorthAThread) {
  const SingleThread restores_their_number;
  at::set_num_threads(3);
  EXPECT_EQ(parallel_parts(100, 64), 1);
  EXPECT_EQ(parallel_parts(1100, 64), 2);
  EXPECT_EQ(parallel_parts(100'000, 64), 3);
  EXPECT_EQ(parallel_parts(1, 1'000'000), 1);
  at::set_num_threads(1);
  EXPECT_EQ(parallel_parts(100'000, 64), 1);
}

}  // namespace
}  // namespace stratagem::models::parallel_rows_test
