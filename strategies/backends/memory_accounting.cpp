#include "strategies/backends/memory_accounting.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "strategies/runtime/large_blocks.h"

namespace stratagem::backends {
namespace {

constexpr std::size_t cache_line = 64;

/// A lock that is held for a few stores, almost always by the account's own thread.
class SpinLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

/// The composition of the peak is exact, but not copied at each allocation on the way up: at its
/// peak the account's present composition counts, and the operation that next leaves the peak
/// copies it.
class alignas(cache_line) Account {
 public:
  /// Returns the allocation's number, from 1.
  std::int64_t add(std::int64_t bytes, MemoryCategory category) {
    const std::lock_guard lock(lock_);
    grow(category, bytes);
    total_ += bytes;
    ++allocations_;
    if (total_ > peak_) {
      peak_ = total_;
      last_at_peak_ = allocations_;
      stands_at_peak_ = true;
    }
    return allocations_;
  }

  void remove(std::int64_t bytes, MemoryCategory category) {
    const std::lock_guard lock(lock_);
    if (std::exchange(stands_at_peak_, false)) memory_.at_peak = memory_.current;
    memory_.current[category] -= bytes;
    total_ -= bytes;
  }

  /// Changes the `category` of a live block, allocation `number`, to `to`.
  void retag(MemoryCategory& category, MemoryCategory to, std::int64_t bytes, std::int64_t number) {
    const std::lock_guard lock(lock_);
    if (category == to) return;
    memory_.current[category] -= bytes;
    grow(to, bytes);
    if (!stands_at_peak_ && number <= last_at_peak_) {
      memory_.at_peak[category] -= bytes;
      memory_.at_peak[to] += bytes;
      memory_.peak[to] = std::max(memory_.peak[to], memory_.at_peak[to]);
    }
    category = to;
  }

  runtime::MemoryStatistics statistics() const {
    const std::lock_guard lock(lock_);
    runtime::MemoryStatistics all{total_, peak_, memory_};
    if (stands_at_peak_) all.by_category->at_peak = memory_.current;
    return all;
  }

  void reset_peak() {
    const std::lock_guard lock(lock_);
    memory_.peak = memory_.current;
    peak_ = total_;
    last_at_peak_ = allocations_;
    stands_at_peak_ = true;
  }

 private:
  void grow(MemoryCategory category, std::int64_t bytes) {
    std::int64_t& now = memory_.current[category];
    now += bytes;
    memory_.peak[category] = std::max(memory_.peak[category], now);
  }

  mutable SpinLock lock_;
  bool stands_at_peak_ = true;
  std::int64_t total_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t allocations_ = 0;
  std::int64_t last_at_peak_ = 0;  // the last allocation in the peak
  runtime::CategorizedMemory memory_;
};

// c10 has one CPU allocator a process without a context, so accounts are global.
std::array<Account, memory_accounts>& accounts() {
  static std::array<Account, memory_accounts> all;
  return all;
}

thread_local MemoryAccount this_thread_account = host_account;
thread_local MemoryCategory this_thread_category = MemoryCategory::other;

/// The data for freeing a small block. It is in the cache line before the block, because LibTorch's
/// oneDNN glue frees through the bare data pointer.
struct alignas(cache_line) Header {
  std::int64_t bytes = 0;
  std::int64_t number = 0;
  MemoryAccount account = host_account;
  MemoryCategory category = MemoryCategory::other;
};

runtime::LargeBlocks& large_blocks() {
  // The blocks are never destroyed: c10 may free some until the very end of the process.
  static runtime::LargeBlocks& all = *std::make_unique<runtime::LargeBlocks>().release();
  return all;
}

/// Small blocks start a cache line behind a multiple of two, so none starts where large ones do.
bool is_large(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % runtime::LargeBlocks::huge_page == 0;
}

Account& account(MemoryAccount index) { return accounts().at(static_cast<std::size_t>(index)); }

void free_data(void* data) {
  if (data == nullptr) return;
  if (is_large(data)) {
    const runtime::LargeBlocks::Block block = large_blocks().give_back(data);
    account(block.owner).remove(block.bytes, block.category);
    return;
  }
  Header* header = static_cast<Header*>(data) - 1;
  account(header->account).remove(header->bytes, header->category);
  std::free(header);
}

void* allocate_small(const Header& header) {
  void* memory = nullptr;
  const std::size_t room = sizeof(Header) + static_cast<std::size_t>(header.bytes);
  if (posix_memalign(&memory, 2 * cache_line, room) != 0) throw std::bad_alloc();
  return new (memory) Header(header) + 1;
}

void* allocate_data(std::size_t size) {
  const auto bytes = static_cast<std::int64_t>(size);
  const MemoryAccount owner = this_thread_account;
  const MemoryCategory category = this_thread_category;
  if (size >= runtime::LargeBlocks::huge_page) {
    void* data = large_blocks().take({bytes, owner, category});
    large_blocks().block_of(data).number = account(owner).add(bytes, category);
    return data;
  }
  void* data = allocate_small({bytes, 0, owner, category});
  (static_cast<Header*>(data) - 1)->number = account(owner).add(bytes, category);
  return data;
}

class AccountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = bytes == 0 ? nullptr : allocate_data(bytes);
    return {data, data, &free_data, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_data; }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    std::memcpy(destination, source, bytes);
  }
};

constexpr std::uint8_t above_default_priority = 10;

}  // namespace

void install_accounting_allocator() {
  // The allocator is static: c10 keeps a plain pointer and may free blocks until the process ends.
  static AccountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, above_default_priority);
}

MemoryAccount account_of(const runtime::DeviceDescription& device) {
  if (device.index < 0 || device.index >= runtime::most_devices) {
    throw std::invalid_argument(
        fmt::format("{}: a process has at most {} devices", device.name(), runtime::most_devices));
  }
  return host_account + 1 + device.index;
}

void use_account(MemoryAccount index) {
  account(index);
  this_thread_account = index;
}

MemoryAccountGuard::MemoryAccountGuard(MemoryAccount account) : before_(this_thread_account) {
  use_account(account);
}

MemoryAccountGuard::~MemoryAccountGuard() { this_thread_account = before_; }

MemoryCategoryGuard::MemoryCategoryGuard(MemoryCategory category)
    : before_(std::exchange(this_thread_category, category)) {}

MemoryCategoryGuard::~MemoryCategoryGuard() { this_thread_category = before_; }

void retag(const at::Tensor& tensor, MemoryCategory category) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  void* data = memory.get_context();
  if (data == nullptr || memory.get_deleter() != &free_data) return;
  if (is_large(data)) {
    runtime::LargeBlocks::Block& block = large_blocks().block_of(data);
    account(block.owner).retag(block.category, category, block.bytes, block.number);
    return;
  }
  Header& header = *(static_cast<Header*>(data) - 1);
  account(header.account).retag(header.category, category, header.bytes, header.number);
}

runtime::MemoryStatistics memory_of(MemoryAccount index) { return account(index).statistics(); }

void reset_peak_of(MemoryAccount index) { account(index).reset_peak(); }

}  // namespace stratagem::backends
