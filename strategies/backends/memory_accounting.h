// Memory accounting on the CPU: each account's bytes by purpose, now and at the peak.
//
// A c10 allocator charges each block to the account of the allocating thread and returns the bytes
// to that account, whichever thread frees it. A device's thread has its own account, so the figures
// are a device's. Scratch memory inside oneDNN and MKL bypasses c10 and is not counted. Blocks of 2
// MB and more are kept and reused (see large_blocks.h). The allocator below is jemalloc if it is
// linked in, which keeps freed pages and asks for huge ones: otherwise every step maps and
// page-faults scratch memory anew.
//
// A block has the category of the innermost MemoryCategoryGuard of its thread. The purpose of
// memory is not always known at first: autograd allocates a gradient like any other result. Such a
// block is re-tagged later, and then counts as if it had always had that category, also at a peak
// that contains it.
#pragma once

#include <ATen/core/Tensor.h>

#include "strategies/runtime/device.h"
#include "strategies/runtime/memory_category.h"

namespace stratagem::backends {

using runtime::MemoryCategory;

/// Account 0 is the host's, for every thread without another account.
using MemoryAccount = int;
inline constexpr MemoryAccount host_account = 0;
inline constexpr MemoryAccount memory_accounts = 1 + runtime::most_devices;

/// Returns the account of a device's thread. Throws std::invalid_argument, in one line, if there
/// are too many devices.
MemoryAccount account_of(const runtime::DeviceDescription& device);

/// Makes the accounting allocator the CPU allocator of this process. Call once, before the first
/// tensor; earlier blocks are freed by the allocator that made them.
void install_accounting_allocator();

/// Charges this thread's later allocations to `account`. Throws std::out_of_range, like the other
/// functions, unless it is in 0 .. memory_accounts - 1.
void use_account(MemoryAccount account);

/// Charges this thread's allocations in the scope to another account.
class MemoryAccountGuard {
 public:
  explicit MemoryAccountGuard(MemoryAccount account);
  ~MemoryAccountGuard();
  MemoryAccountGuard(const MemoryAccountGuard&) = delete;
  MemoryAccountGuard& operator=(const MemoryAccountGuard&) = delete;

 private:
  MemoryAccount before_;
};

/// Gives this thread's allocations in the scope a category; outside of any guard it is `other`.
class MemoryCategoryGuard {
 public:
  explicit MemoryCategoryGuard(MemoryCategory category);
  ~MemoryCategoryGuard();
  MemoryCategoryGuard(const MemoryCategoryGuard&) = delete;
  MemoryCategoryGuard& operator=(const MemoryCategoryGuard&) = delete;

 private:
  MemoryCategory before_;
};

/// Changes the category of the tensor's whole block, also for the past. Does nothing for an
/// undefined tensor or memory of another allocator (a GPU's).
void retag(const at::Tensor& tensor, MemoryCategory category);

/// Returns the account's statistics, with categories.
runtime::MemoryStatistics memory_of(MemoryAccount account);
/// Restarts the peaks from the present allocations.
void reset_peak_of(MemoryAccount account);

}  // namespace stratagem::backends
