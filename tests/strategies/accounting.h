// Memory is accounted from a test program's first test on, as in a worker.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "strategies/backends/memory_accounting.h"

namespace stratagem::backends {

class Accounting : public ::testing::Environment {
 public:
  void SetUp() override { install_accounting_allocator(); }
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
