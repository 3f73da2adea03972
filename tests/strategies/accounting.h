// Memory is accounted from a test program's first test on, as in a worker.
#pragma once

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "strategies/backends/memory_accounting.h"

namespace stratagem::backends {

/// Looked up when nothing else can have been put before it.
inline c10::Allocator& accounting_allocator() {
  static c10::Allocator& found = []() -> c10::Allocator& {
    install_accounting_allocator();
    return *c10::GetCPUAllocator();
  }();
  return found;
}

/// For tests of what memory is for, which nobody knows of the memory of stream devices: while it
/// lives, what an earlier test of the process has put before the accounting allocator is not used.
class AccountingAlone {
 public:
  AccountingAlone() : before_(*c10::GetCPUAllocator()) { use(accounting_allocator()); }
  ~AccountingAlone() { use(before_); }
  AccountingAlone(const AccountingAlone&) = delete;
  AccountingAlone& operator=(const AccountingAlone&) = delete;

 private:
  static void use(c10::Allocator& allocator) {
    constexpr std::uint8_t that_of_stream_memory = 20;
    c10::SetCPUAllocator(&allocator, that_of_stream_memory);
  }

  c10::Allocator& before_;
};

class Accounting : public ::testing::Environment {
 public:
  void SetUp() override { accounting_allocator(); }
};
[[maybe_unused]] inline const auto* const accounting =
    ::testing::AddGlobalTestEnvironment(std::make_unique<Accounting>().release());

/// What an account holds, once the threads of a backend have let go of what they were given.
inline std::int64_t settled_bytes(MemoryAccount account) {
  std::int64_t before = -1;
  std::int64_t bytes = memory_of(account).current_bytes;
  while (bytes != before) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    before = bytes;
    bytes = memory_of(account).current_bytes;
  }
  return bytes;
}

}  // namespace stratagem::backends
