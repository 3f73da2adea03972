#include "strategies/runtime/large_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stratagem::runtime::large_blocks_test {
namespace {

constexpr std::int64_t page = LargeBlocks::huge_page;

class LargeBlocksTest : public ::testing::Test {
 protected:
  /// Takes and keeps `count` blocks, one beside the other.
  void keep(int count, std::int64_t bytes, int owner = 0) {
    std::vector<void*> taken;
    for (int i = 0; i < count; ++i) taken.push_back(blocks_.take({bytes, owner}));
    for (void* data : taken) blocks_.give_back(data);
  }

  LargeBlocks blocks_;
};

TEST_F(LargeBlocksTest, StartAtAHugePageAndCanBeWritten) {
  for (const std::int64_t bytes : {std::int64_t{1}, page, page + 1, 3 * page}) {
    void* data = blocks_.take({bytes, 0});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % LargeBlocks::huge_page, 0U);
    std::memset(data, 1, static_cast<std::size_t>(bytes));
    blocks_.give_back(data);
  }
}

TEST_F(LargeBlocksTest, GivingBackTellsWhatABlockWasTakenFor) {
  void* data = blocks_.take({page + 5, 3});
  const LargeBlocks::Block block = blocks_.give_back(data);
  EXPECT_EQ(block.bytes, page + 5);
  EXPECT_EQ(block.owner, 3);
  EXPECT_EQ(blocks_.kept_bytes(3), 2 * LargeBlocks::huge_page);
  EXPECT_EQ(blocks_.kept_bytes(0), 0U);
}

TEST_F(LargeBlocksTest, WhatWasNotTakenCannotBeGivenBack) {
  LargeBlocks others;
  void* data = others.take({page, 0});
  EXPECT_THROW(blocks_.give_back(data), std::invalid_argument);
  others.give_back(data);
  EXPECT_THROW(others.give_back(data), std::invalid_argument);
}

TEST_F(LargeBlocksTest, TheBlockFreedLastIsTakenFirst) {
  void* first = blocks_.take({page, 0});
  void* second = blocks_.take({page, 0});
  blocks_.give_back(second);
  blocks_.give_back(first);
  EXPECT_EQ(blocks_.take({page, 0}), first);
  EXPECT_EQ(blocks_.take({page - 1, 0}), second);
  EXPECT_EQ(blocks_.kept_bytes(0), 0U);
  blocks_.give_back(first);
  blocks_.give_back(second);
}

TEST_F(LargeBlocksTest, ABlockWaitsForItsOwnSizeAndOwner) {
  keep(1, 4 * page);
  const std::vector<void*> others = {blocks_.take({2 * page, 0}), blocks_.take({4 * page, 1})};
  EXPECT_EQ(blocks_.kept_bytes(0), 4 * LargeBlocks::huge_page);
  for (void* data : others) blocks_.give_back(data);
}

TEST_F(LargeBlocksTest, KeepsNoMoreThanHalfAsMuchAsWasEverInUse) {
  keep(10, page);
  keep(4, 2 * page);  // eight more pages: five of the bound of fifteen are free, three are made so
  EXPECT_EQ(blocks_.kept_bytes(0), 15 * LargeBlocks::huge_page);
  keep(7, page);  // those that waited longest went: seven are still there
  EXPECT_EQ(blocks_.kept_bytes(0), 15 * LargeBlocks::huge_page);
  keep(1,
       20 * page);  // a new highest use: ten may be kept beside it, of blocks of two that is nine
  EXPECT_EQ(blocks_.kept_bytes(0), 29 * LargeBlocks::huge_page);
}

TEST_F(LargeBlocksTest, AStepThatIsRepeatedAsksForNothingNew) {
  const auto step = [this] {
    std::vector<void*> taken;
    for (const std::int64_t pages : {6, 1, 3, 1, 6})
      taken.push_back(blocks_.take({pages * page, 0}));
    void* scratch = blocks_.take({2 * page, 0});
    blocks_.give_back(scratch);
    for (void* data : taken) blocks_.give_back(data);
    taken.push_back(scratch);
    std::ranges::sort(taken);
    return taken;
  };
  const std::vector<void*> first = step();
  EXPECT_EQ(step(), first);
  EXPECT_EQ(step(), first);
}

TEST_F(LargeBlocksTest, WhatCannotBeHadIsAnErrorAfterEverythingKeptWasFreed) {
  bool refuses = false;
  int refused = 0;
  LargeBlocks blocks([&](std::size_t room) -> void* {
    if (!refuses) return ::operator new (room, std::align_val_t{LargeBlocks::huge_page});
    ++refused;
    return nullptr;
  });
  for (const int owner : {0, 1}) blocks.give_back(blocks.take({page, owner}));
  refuses = true;
  EXPECT_THROW(blocks.take({2 * page, 0}), std::bad_alloc);
  EXPECT_EQ(refused, 2) << "once more when everything kept was freed";
  EXPECT_EQ(blocks.kept_bytes(0), 0U);
  EXPECT_EQ(blocks.kept_bytes(1), 0U);
  refuses = false;
  blocks.give_back(blocks.take({2 * page, 0}));
}

TEST_F(LargeBlocksTest, ThreadsTakeAndGiveBackWhatOthersTook) {
  constexpr int rounds = 200;
  std::vector<void*> handed(2 * rounds);
  const auto take = [&](int owner) {
    for (int i = 0; i < rounds; ++i) {
      void* own = blocks_.take({page, owner});
      static_cast<char*>(own)[0] = static_cast<char>(owner);
      handed[static_cast<std::size_t>(owner * rounds + i)] = i % 50 == 0 ? own : nullptr;
      if (i % 50 != 0) blocks_.give_back(own);
    }
  };
  {
    const std::jthread one(take, 0);
    const std::jthread two(take, 1);
  }
  for (int i = 0; i < 2 * rounds; ++i) {
    void* data = handed[static_cast<std::size_t>(i)];
    if (data == nullptr) continue;
    EXPECT_EQ(static_cast<char*>(data)[0], static_cast<char>(i / rounds));
    EXPECT_EQ(blocks_.give_back(data).owner, i / rounds);
  }
}

}  // namespace
}  // namespace stratagem::runtime::large_blocks_test
