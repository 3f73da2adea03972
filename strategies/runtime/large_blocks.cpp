#include "strategies/runtime/large_blocks.h"

#include <fmt/format.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

namespace stratagem::runtime {
namespace {

std::size_t room_for(std::int64_t bytes) {
  constexpr std::size_t page = LargeBlocks::huge_page;
  return (static_cast<std::size_t>(bytes) + page - 1) / page * page;
}

}  // namespace

void LargeBlocks::Free::operator()(void* data) const {
  ::operator delete (data, std::align_val_t{huge_page});
}

LargeBlocks::LargeBlocks(Allocate allocate) : allocate_(std::move(allocate)) {}

void* LargeBlocks::from_system(std::size_t room) {
  return ::operator new (room, std::align_val_t{huge_page}, std::nothrow);
}

LargeBlocks::Memory LargeBlocks::allocate(std::size_t room) const {
  Memory memory(allocate_(room));
  // This is only advice: if huge pages are off, the call fails without harm.
  if (memory) madvise(memory.get(), room, MADV_HUGEPAGE);
  return memory;
}

LargeBlocks::Memory LargeBlocks::take_kept(Owner& owner, std::size_t room) {
  const auto found = std::find_if(owner.kept.rbegin(), owner.kept.rend(),
                                  [room](const Kept& kept) { return kept.room == room; });
  if (found == owner.kept.rend()) return nullptr;
  Memory memory = std::move(found->memory);
  owner.kept.erase(std::next(found).base());
  owner.kept_room -= room;
  ASAN_UNPOISON_MEMORY_REGION(memory.get(), room);
  return memory;
}

void LargeBlocks::keep_at_most(Owner& owner, std::size_t most) {
  auto first = owner.kept.begin();
  for (; first != owner.kept.end() && owner.kept_room > most; ++first) {
    owner.kept_room -= first->room;
    ASAN_UNPOISON_MEMORY_REGION(first->memory.get(), first->room);
  }
  owner.kept.erase(owner.kept.begin(), first);
}

LargeBlocks::Memory LargeBlocks::make(Owner& owner, std::size_t room) {
  const std::size_t used = owner.used_room + room;
  const auto most =
      static_cast<std::size_t>(most_room * static_cast<double>(std::max(owner.peak_room, used)));
  keep_at_most(owner, most - used);
  if (Memory memory = allocate(room)) return memory;
  for (auto& [_, other] : owners_) keep_at_most(other, 0);
  if (Memory memory = allocate(room)) return memory;
  throw std::bad_alloc();
}

void* LargeBlocks::take(Block block) {
  const std::size_t room = room_for(block.bytes);
  const std::lock_guard lock(mutex_);
  Owner& owner = owners_[block.owner];
  Memory memory = take_kept(owner, room);
  if (!memory) memory = make(owner, room);
  used_.emplace(memory.get(), Used{block, room});
  owner.used_room += room;
  owner.peak_room = std::max(owner.peak_room, owner.used_room);
  return memory.release();
}

LargeBlocks::UsedBlocks::iterator LargeBlocks::find(void* data, const char* what_happens) {
  const auto found = used_.find(data);
  if (found != used_.end()) return found;
  throw std::invalid_argument(
      fmt::format("a block at {} is {} that was not taken", data, what_happens));
}

LargeBlocks::Block& LargeBlocks::block_of(void* data) {
  const std::lock_guard lock(mutex_);
  return find(data, "looked up")->second.block;  // other calls do not move it
}

LargeBlocks::Block LargeBlocks::give_back(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = find(data, "freed");
  const Used used = found->second;
  Owner& owner = owners_[used.block.owner];
  owner.kept.push_back({Memory(data), used.room});
  owner.kept_room += used.room;
  owner.used_room -= used.room;
  used_.erase(found);
  ASAN_POISON_MEMORY_REGION(data, used.room);
  return used.block;
}

std::size_t LargeBlocks::kept_bytes(int owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : found->second.kept_room;
}

}  // namespace stratagem::runtime
