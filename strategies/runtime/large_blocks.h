// Memory for large tensors, kept when it is freed and given out again.
//
// A training step asks for the same sizes in the same order every time. A general allocator merges
// what is freed and cuts it anew, so that each of the first steps touches pages that no step has
// touched before (a huge page costs milliseconds where a hypervisor has to find it first) and
// later ones get memory that has long left the caches. Here a freed block waits for a request of
// its own size from its own owner, and the block freed last is taken first: it is the one that a
// cache may still hold. CUDA's caching allocator in PyTorch keeps blocks in the same way.
//
// What is kept is bounded: blocks in use and kept together are at most `most_room` times what an
// owner had in use at its highest. Beyond it the block that has waited longest is freed, so that a
// process which goes from one batch size to another does not hold both.
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
  /// Blocks start at a multiple of this, and their room is one.
  static constexpr std::size_t huge_page = std::size_t{2} << 20U;
  static constexpr double most_room = 1.5;

  struct Block {
    std::int64_t bytes = 0;
    int owner = 0;
    MemoryCategory category = MemoryCategory::other;
    std::int64_t number = 0;  // among the owner's allocations
  };

  /// Memory for so many bytes that operator delete frees, aligned to huge_page; null where there is
  /// none.
  using Allocate = std::function<void*(std::size_t)>;

  explicit LargeBlocks(Allocate allocate = from_system);
  /// Frees what is kept; what is in use stays.
  ~LargeBlocks() = default;
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  /// Uninitialised memory for `block.bytes` bytes, one or more. Throws std::bad_alloc when there is
  /// none even after everything kept was freed.
  void* take(Block block);

  /// What take() was told of the block at `data`, to be changed by whoever holds it; valid until it
  /// is given back. Throws std::invalid_argument for anything else.
  Block& block_of(void* data);

  /// Ends the use of what take() returned, and tells what it was taken for. Throws
  /// std::invalid_argument for anything else.
  Block give_back(void* data);

  /// Bytes of an owner that are not in use and wait for a request, in whole huge pages.
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
    std::vector<Kept> kept;  // the one freed last stands last
    std::size_t kept_room = 0;
    std::size_t used_room = 0;
    std::size_t peak_room = 0;
  };

  using UsedBlocks = std::unordered_map<void*, Used>;

  /// Throws where there is none. Under the lock.
  UsedBlocks::iterator find(void* data, const char* what_happens);
  static void* from_system(std::size_t room);
  Memory allocate(std::size_t room) const;
  static Memory take_kept(Owner& owner, std::size_t room);
  /// Frees what has waited longest until no more than `most` is kept.
  static void keep_at_most(Owner& owner, std::size_t most);
  Memory make(Owner& owner, std::size_t room);

  Allocate allocate_;
  mutable std::mutex mutex_;
  std::map<int, Owner> owners_;
  UsedBlocks used_;
};

}  // namespace stratagem::runtime
