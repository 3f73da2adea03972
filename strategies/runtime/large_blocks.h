// Keeps memory of large tensors after it is freed and reuses it.
//
// A training step requests the same sizes in the same order every time. A general allocator merges
// and splits freed memory, so that each of the first steps touches new pages (a huge page costs
// milliseconds if a hypervisor has to find it first) and later steps get memory that has long left
// the caches. Here a freed block waits for a request of its own size from its own owner, and the
// block freed last is reused first, because a cache may still hold it. PyTorch's CUDA caching
// allocator keeps blocks in the same way.
//
// The kept memory is bounded: blocks in use and kept are at most `most_room` times the owner's
// highest use. Beyond it the block that has waited longest is freed, so that a process that changes
// its batch size does not hold both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strategies/runtime/memory_category.h"

namespace stratagem::runtime {

class LargeBlocks {
 public:
  /// Blocks start at, and span, a multiple of this.
  static constexpr std::size_t huge_page = std::size_t{2} << 20U;
  static constexpr double most_room = 1.5;

  struct Block {
    std::int64_t bytes = 0;
    int owner = 0;
    MemoryCategory category = MemoryCategory::other;
    std::int64_t number = 0;  // the number among the owner's allocations
  };

  /// Returns memory, aligned to huge_page, that operator delete frees; null if there is none.
  using Allocate = std::function<void*(std::size_t)>;

  explicit LargeBlocks(Allocate allocate = from_system);
  /// Frees kept blocks, but not those in use.
  ~LargeBlocks() = default;
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  /// Returns uninitialised memory for `block.bytes` bytes, one or more. Throws std::bad_alloc if
  /// there is none even after freeing all kept blocks.
  void* take(Block block);

  /// Returns take()'s argument for the block at `data`, which its holder may change; valid until
  /// the block is given back. Throws std::invalid_argument for anything else.
  Block& block_of(void* data);

  /// Ends the use of take()'s result and returns take()'s argument. Throws std::invalid_argument
  /// for anything else.
  Block give_back(void* data);

  /// Returns an owner's bytes that wait for a request, in whole huge pages.
  std::size_t kept_bytes(int owner) const;

 private:
  struct Free {
    void operator()(void* data) const;
  };
  using Memory = std::unique_ptr<void, Free>;

  struct Kept {
    Memory memory;
    std::size_t room = 0;
  };
  struct Used {
    Block block;
    std::size_t room = 0;
  };
  struct Owner {
    std::vector<Kept> kept;  // the block freed last is at the end
    std::size_t kept_room = 0;
    std::size_t used_room = 0;
    std::size_t peak_room = 0;
  };

  using UsedBlocks = std::unordered_map<void*, Used>;

  /// Throws if there is none. The caller holds the lock.
  UsedBlocks::iterator find(void* data, const char* what_happens);
  static void* from_system(std::size_t room);
  Memory allocate(std::size_t room) const;
  static Memory take_kept(Owner& owner, std::size_t room);
  /// Frees the blocks that have waited longest until no more than `most` is kept.
  static void keep_at_most(Owner& owner, std::size_t most);
  Memory make(Owner& owner, std::size_t room);

  Allocate allocate_;
  mutable std::mutex mutex_;
  std::map<int, Owner> owners_;
  UsedBlocks used_;
};

}  // namespace stratagem::runtime
