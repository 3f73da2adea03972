#include "strategies/runtime/memory_accounting.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace stratagem::runtime {
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
};

// c10 has one CPU allocator a process and asks for no context, so its accounts are the process's.
std::array<Account, memory_accounts>& accounts() {
  static std::array<Account, memory_accounts> all;
  return all;
}

thread_local MemoryAccount this_thread_account = host_account;

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20U;

/// What freeing needs to know. Stands in the cache line before the data: LibTorch's oneDNN glue
/// frees through the bare data pointer, so there is no other place for it.
struct alignas(cache_line) Header {
  std::int64_t bytes = 0;
  MemoryAccount account = host_account;
};

void free_data(void* data) {
  if (data == nullptr) return;
  Header* header = static_cast<Header*>(data) - 1;
  accounts()[static_cast<std::size_t>(header->account)].current.fetch_sub(
      header->bytes, std::memory_order_relaxed);
  std::free(header);
}

void* allocate_data(std::size_t bytes) {
  void* memory = nullptr;
  const std::size_t alignment = bytes >= huge_page ? huge_page : cache_line;
  if (posix_memalign(&memory, alignment, sizeof(Header) + bytes) != 0) throw std::bad_alloc();
  // Advice only: where huge pages are switched off the call fails and nothing is lost.
  if (bytes >= huge_page) madvise(memory, sizeof(Header) + bytes, MADV_HUGEPAGE);
  auto* header = new (memory) Header{static_cast<std::int64_t>(bytes), this_thread_account};
  accounts()[static_cast<std::size_t>(header->account)].add(header->bytes);
  return header + 1;
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

void use_account(MemoryAccount account) { this_thread_account = account; }

MemoryStatistics memory_of(MemoryAccount account) {
  const Account& entry = accounts()[static_cast<std::size_t>(account)];
  return {entry.current.load(std::memory_order_relaxed),
          entry.peak.load(std::memory_order_relaxed)};
}

void reset_peak_of(MemoryAccount account) {
  Account& entry = accounts()[static_cast<std::size_t>(account)];
  entry.peak.store(entry.current.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace stratagem::runtime
