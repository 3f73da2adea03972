#include "strategies/stages/flat_layout.h"

#include <gtest/gtest.h>

#include <random>

namespace stratagem::stages::flat_layout_test {
namespace {

std::vector<std::int64_t> random_sizes(std::mt19937& random) {
  std::vector<std::int64_t> sizes;
  for (int count = std::uniform_int_distribution(1, 9)(random); count > 0; --count) {
    sizes.push_back(std::uniform_int_distribution<std::int64_t>(1, 200)(random));
  }
  return sizes;
}

TEST(FlatLayout, ShardsAreEqualAndTileTheBuffer) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const auto sizes = random_sizes(random);
    const int shards = std::uniform_int_distribution(1, 7)(random);
    const std::int64_t element = std::uniform_int_distribution(1, 3)(random) == 1 ? 8 : 2;
    const FlatLayout layout(sizes, element, shards);
    std::int64_t end = 0;
    for (int shard = 0; shard < shards; ++shard) {
      EXPECT_EQ(layout.shard(shard).start, end);
      EXPECT_EQ(layout.shard(shard).count, layout.shard_size());
      EXPECT_EQ(layout.shard_size() * element % FlatLayout::alignment, 0);
      end += layout.shard(shard).count;
    }
    EXPECT_EQ(layout.size(), end);
  }
}

TEST(FlatLayout, EveryElementOfAParameterLiesInOneShardAndInNoOtherParameter) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 500; ++trial) {
    const auto sizes = random_sizes(random);
    const int shards = std::uniform_int_distribution(1, 7)(random);
    const FlatLayout layout(sizes, 4, shards);
    std::vector<int> owners(static_cast<std::size_t>(layout.size()), 0);
    for (std::size_t index = 0; index < sizes.size(); ++index) {
      EXPECT_EQ(layout.parameters()[index].count, sizes[index]);
      EXPECT_EQ(layout.parameters()[index].start * 4 % FlatLayout::alignment, 0);
      std::int64_t found = 0;
      for (int shard = 0; shard < shards; ++shard) {
        const Range part = layout.part_of(index, shard);
        found += part.count;
        for (std::int64_t each = part.start; each < part.start + part.count; ++each) {
          ++owners.at(static_cast<std::size_t>(layout.shard(shard).start + each));
        }
      }
      EXPECT_EQ(found, sizes[index]);
    }
    for (const Range& gap : layout.gaps()) {
      for (std::int64_t each = gap.start; each < gap.start + gap.count; ++each) {
        ++owners.at(static_cast<std::size_t>(each));
      }
    }
    EXPECT_TRUE(std::ranges::all_of(owners, [](int count) { return count == 1; }));
  }
}

TEST(FlatLayout, PadsNoMoreThanItMust) {
  EXPECT_EQ(FlatLayout({16, 16}, 4, 2).size(), 32);
  EXPECT_EQ(FlatLayout({17}, 4, 1).size(), 32);
  EXPECT_EQ(FlatLayout({1}, 4, 4).size(), 64) << "smaller than the shards are many";
  EXPECT_EQ(FlatLayout({1}, 4, 4).part_of(0, 3), Range{});
}

}  // namespace
}  // namespace stratagem::stages::flat_layout_test
