#include "strategies/backends/memory_accounting.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "strategies/runtime/large_blocks.h"

namespace stratagem::backends {
namespace {

struct Account {
  std::atomic<std::int64_t> current{0};
  std::atomic<std::int64_t> peak{0};

  void add(std::int64_t bytes) {
    const std::int64_t now = current.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::int64_t highest = peak.load(std::memory_order_relaxed);
    while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
    }
  }

  void remove(std::int64_t bytes) { current.fetch_sub(bytes, std::memory_order_relaxed); }
};

// c10 has one CPU allocator a process and asks for no context, so its accounts are the process's.
std::array<Account, memory_accounts>& accounts() {
  static std::array<Account, memory_accounts> all;
  return all;
}

thread_local MemoryAccount this_thread_account = host_account;

constexpr std::size_t cache_line = 64;

/// What freeing a small block needs to know. Stands in the cache line before the data: LibTorch's
/// oneDNN glue frees through the bare data pointer, so there is no other place for it.
struct alignas(cache_line) Header {
  std::int64_t bytes = 0;
  MemoryAccount account = host_account;
};

runtime::LargeBlocks& large_blocks() {
  // Never destroyed: c10 may free blocks until the very end of the process.
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
    account(block.owner).remove(block.bytes);
    return;
  }
  Header* header = static_cast<Header*>(data) - 1;
  account(header->account).remove(header->bytes);
  std::free(header);
}

void* allocate_small(std::int64_t bytes) {
  void* memory = nullptr;
  const std::size_t room = sizeof(Header) + static_cast<std::size_t>(bytes);
  if (posix_memalign(&memory, 2 * cache_line, room) != 0) throw std::bad_alloc();
  return new (memory) Header{bytes, this_thread_account} + 1;
}

void* allocate_data(std::size_t size) {
  const auto bytes = static_cast<std::int64_t>(size);
  void* data = size >= runtime::LargeBlocks::huge_page
                   ? large_blocks().take({bytes, this_thread_account})
                   : allocate_small(bytes);
  account(this_thread_account).add(bytes);
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
  // c10 keeps a plain pointer and may free blocks until the very end of the process.
  static AccountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, above_default_priority);
}

MemoryAccount account_of(const runtime::DeviceDescription& device) {
  if (device.index < 0 || device.index >= runtime::most_devices) {
    throw std::invalid_argument(fmt::format("{}: a process drives {} devices at most",
                                            device.name(), runtime::most_devices));
  }
  return host_account + 1 + device.index;
}

void use_account(MemoryAccount index) {
  account(index);
  this_thread_account = index;
}

runtime::MemoryStatistics memory_of(MemoryAccount index) {
  const Account& entry = account(index);
  return {entry.current.load(std::memory_order_relaxed),
          entry.peak.load(std::memory_order_relaxed)};
}

void reset_peak_of(MemoryAccount index) {
  Account& entry = account(index);
  entry.peak.store(entry.current.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace stratagem::backends
