// Memory accounting on the CPU: who allocated how much and what for, now and at most.
//
// A c10 allocator that charges each block to the account of the thread that allocates it and
// returns the bytes to that same account, whichever thread frees it. A device's thread has an
// account of its own, so the figures are a device's. Scratch memory inside oneDNN and MKL does not
// pass through c10 and is not seen. Blocks of 2 MB and more are kept and given out again (see
// large_blocks.h). The allocator below is jemalloc where it is linked in, which keeps freed pages
// and asks for huge ones: without that, scratch memory is mapped and page-faulted anew in every
// step.
//
// A block is of the category that the innermost MemoryCategoryGuard of its thread names. What
// memory will be is not always known when it is made: autograd allocates a gradient like any other
// result. Such a block is re-tagged later, and then counts as if it had been of that category all
// the time, also at a peak that it was part of.
#pragma once

#include <ATen/core/Tensor.h>

#include "strategies/runtime/device.h"
#include "strategies/runtime/memory_category.h"

namespace stratagem::backends {

using runtime::MemoryCategory;

/// Account 0 is the host's: every thread that was not given another.
using MemoryAccount = int;
inline constexpr MemoryAccount host_account = 0;
inline constexpr MemoryAccount memory_accounts = 1 + runtime::most_devices;

/// That of a device's thread. Throws std::invalid_argument, in one line, for a device that is one
/// too many.
MemoryAccount account_of(const runtime::DeviceDescription& device);

/// Makes the accounting allocator the CPU allocator of this process. Call once, before the first
/// tensor; blocks from before are freed by the allocator that made them.
void install_accounting_allocator();

/// Charges what this thread allocates from now on to `account`. Throws std::out_of_range, as the
/// others do, unless it lies in 0 .. memory_accounts - 1.
void use_account(MemoryAccount account);

/// Charges what this thread allocates meanwhile to another account.
class MemoryAccountGuard {
 public:
  explicit MemoryAccountGuard(MemoryAccount account);
  ~MemoryAccountGuard();
  MemoryAccountGuard(const MemoryAccountGuard&) = delete;
  MemoryAccountGuard& operator=(const MemoryAccountGuard&) = delete;

 private:
  MemoryAccount before_;
};

/// What this thread allocates meanwhile is for `category`; outside of any guard it is `other`.
class MemoryCategoryGuard {
 public:
  explicit MemoryCategoryGuard(MemoryCategory category);
  ~MemoryCategoryGuard();
  MemoryCategoryGuard(const MemoryCategoryGuard&) = delete;
  MemoryCategoryGuard& operator=(const MemoryCategoryGuard&) = delete;

 private:
  MemoryCategory before_;
};

/// The whole block that a tensor lies in is, and was, for `category`. Nothing for a tensor that is
/// undefined, or whose memory another allocator made (a GPU's).
void retag(const at::Tensor& tensor, MemoryCategory category);

/// With its categories.
runtime::MemoryStatistics memory_of(MemoryAccount account);
/// The peaks start anew from what is allocated now.
void reset_peak_of(MemoryAccount account);

}  // namespace stratagem::backends
