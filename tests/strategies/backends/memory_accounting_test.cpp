// Memory by what it is for: to the byte, whichever thread allocates and frees.
#include "strategies/backends/memory_accounting.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "tests/strategies/accounting.h"

namespace stratagem::backends::memory_accounting_test {
namespace {

using Category = MemoryCategory;

constexpr std::int64_t small = 1000;                         // elements of one byte
constexpr std::int64_t large = (std::int64_t{3} << 20) + 1;  // a block that is kept

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

at::Tensor bytes_for(Category category, std::int64_t count) {
  const MemoryCategoryGuard guard(category);
  return bytes(count);
}

/// What an account of the test's own holds, from nothing.
class CategoriesTest : public ::testing::Test {
 protected:
  void SetUp() override { reset_peak_of(account); }
  void TearDown() override { EXPECT_EQ(memory_of(account).current_bytes, 0); }

  static runtime::CategorizedMemory memory() {
    const runtime::MemoryStatistics all = memory_of(account);
    EXPECT_EQ(all.by_category->current.sum(), all.current_bytes);
    EXPECT_EQ(all.by_category->at_peak.sum(), all.peak_bytes);
    return *all.by_category;
  }

  static constexpr MemoryAccount account = 777;
  const MemoryAccountGuard charged_{account};
};

TEST_F(CategoriesTest, TheInnermostGuardSaysWhatABlockIsFor) {
  const at::Tensor outside = bytes(small);
  std::vector<at::Tensor> kept;
  {
    const MemoryCategoryGuard parameters(Category::parameters);
    kept.push_back(bytes(large));
    kept.push_back(bytes_for(Category::staging, 2 * small));
    kept.push_back(bytes(small));
  }
  kept.push_back(bytes(3 * small));
  EXPECT_EQ(memory().current[Category::parameters], large + small);
  EXPECT_EQ(memory().current[Category::staging], 2 * small);
  EXPECT_EQ(memory().current[Category::other], 4 * small);
  kept.clear();
  EXPECT_EQ(memory().current[Category::parameters], 0);
  EXPECT_EQ(memory().peak[Category::parameters], large + small);
}

TEST_F(CategoriesTest, AtThePeakIsWhatStoodThenNotWhatEachHadAtMost) {
  at::Tensor activations = bytes_for(Category::activations, 10 * small);
  activations.reset();
  const at::Tensor parameters = bytes_for(Category::parameters, 6 * small);
  at::Tensor staging = bytes_for(Category::staging, 5 * small);  // 11: the peak
  staging.reset();
  staging = bytes_for(Category::other, 5 * small);  // 11 again: no new one
  EXPECT_EQ(memory().peak[Category::activations], 10 * small);
  EXPECT_EQ(memory().at_peak[Category::activations], 0);
  EXPECT_EQ(memory().at_peak[Category::parameters], 6 * small);
  EXPECT_EQ(memory().at_peak[Category::staging], 5 * small);
  EXPECT_EQ(memory().at_peak[Category::other], 0);
  const at::Tensor one_more = bytes_for(Category::other, 1);
  EXPECT_EQ(memory().at_peak[Category::staging], 0);
  EXPECT_EQ(memory().at_peak[Category::other], 5 * small + 1);
}

TEST_F(CategoriesTest, ThePeaksStartAnewFromWhatIsAllocated) {
  const at::Tensor parameters = bytes_for(Category::parameters, small);
  bytes_for(Category::activations, large);
  reset_peak_of(account);
  EXPECT_EQ(memory().peak, memory().current);
  EXPECT_EQ(memory().at_peak, memory().current);
  EXPECT_EQ(memory().at_peak[Category::parameters], small);
}

class RetagTest : public CategoriesTest, public ::testing::WithParamInterface<std::int64_t> {};

TEST_P(RetagTest, ABlockIsWhatItIsFoundToBe) {
  const std::int64_t size = GetParam();
  at::Tensor gradient = bytes_for(Category::activations, size);
  retag(gradient.narrow(0, 1, 2), Category::gradients);  // the block, not the view
  retag(gradient, Category::gradients);
  EXPECT_EQ(memory().current[Category::activations], 0);
  EXPECT_EQ(memory().current[Category::gradients], size);
  gradient.reset();
  EXPECT_EQ(memory().current[Category::gradients], 0);
  EXPECT_EQ(memory().peak[Category::gradients], size);
}

TEST_P(RetagTest, AlsoAtAPeakThatItWasPartOf) {
  const std::int64_t size = GetParam();
  const at::Tensor gradient = bytes_for(Category::activations, size);
  bytes_for(Category::activations, small);  // the peak
  const at::Tensor after = bytes_for(Category::activations, small / 2);
  retag(gradient, Category::gradients);
  retag(after, Category::gradients);
  EXPECT_EQ(memory().at_peak[Category::gradients], size);
  EXPECT_EQ(memory().at_peak[Category::activations], small);
  EXPECT_EQ(memory().peak[Category::gradients], size + small / 2);
}

TEST_P(RetagTest, WhileItStandsAtThePeak) {
  const std::int64_t size = GetParam();
  const at::Tensor gradient = bytes_for(Category::activations, size);
  retag(gradient, Category::gradients);
  bytes_for(Category::activations, 1);
  EXPECT_EQ(memory().at_peak[Category::gradients], size);
  EXPECT_EQ(memory().at_peak[Category::activations], 1);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RetagTest, ::testing::Values(small, large),
                         [](const auto& test) { return test.param == small ? "small" : "large"; });

TEST_F(CategoriesTest, WhatAnotherAllocatorMadeIsLeftAlone) {
  std::array<std::uint8_t, 4> mine{};
  retag(at::from_blob(mine.data(), {4}, at::kByte), Category::gradients);
  retag(at::empty({4}, at::TensorOptions(at::kMeta)), Category::gradients);
  retag(at::empty({0}), Category::gradients);
  retag(at::Tensor(), Category::gradients);
  EXPECT_EQ(memory().peak.sum(), 0);
}

TEST_F(CategoriesTest, AreExactWhateverThreadsDoAtATime) {
  constexpr int rounds = 2000;
  const auto work = [](Category category, Category later) {
    const MemoryAccountGuard charged(account);
    std::vector<at::Tensor> kept;
    for (int round = 0; round < rounds; ++round) {
      kept.push_back(bytes_for(category, 64 + round));
      if (round % 3 == 0) retag(kept.back(), later);
      if (round % 5 == 0) kept.erase(kept.begin());
      const runtime::MemoryStatistics seen = memory_of(account);
      if (seen.by_category->current.sum() != seen.current_bytes ||
          seen.by_category->at_peak.sum() != seen.peak_bytes) {
        ADD_FAILURE() << "the categories do not add up in round " << round;
        return;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (const Category category : {Category::parameters, Category::activations, Category::other}) {
      threads.emplace_back(work, category, Category::gradients);
    }
  }
  EXPECT_EQ(memory().current.sum(), 0);
  EXPECT_EQ(memory().current, runtime::BytesByCategory{});
}

TEST_F(CategoriesTest, ABlockReturnsToItsAccountAndCategoryFromAnyThread) {
  at::Tensor block = bytes_for(Category::communication, small);
  std::jthread([&block] {
    const MemoryCategoryGuard elsewhere(Category::staging);
    block.reset();
  }).join();
  EXPECT_EQ(memory().current, runtime::BytesByCategory{});
  EXPECT_EQ(memory().peak[Category::communication], small);
  EXPECT_EQ(memory().peak[Category::staging], 0);
}

TEST(MemoryAccountGuard, RefusesAnAccountThatThereIsNot) {
  EXPECT_THROW(const MemoryAccountGuard guard(memory_accounts), std::out_of_range);
  const auto before = memory_of(host_account).current_bytes;
  const at::Tensor block = bytes(small);
  EXPECT_EQ(memory_of(host_account).current_bytes - before, small);
}

}  // namespace
}  // namespace stratagem::backends::memory_accounting_test
