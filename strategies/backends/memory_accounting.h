// Memory accounting on the CPU: who allocated how much, now and at most.
//
// A c10 allocator that charges each block to the account of the thread that allocates it and
// returns the bytes to that same account, whichever thread frees it. A device's thread has an
// account of its own, so the figures are a device's. Scratch memory inside oneDNN and MKL does not
// pass through c10 and is not seen. Blocks of 2 MB and more are kept and given out again (see
// large_blocks.h). The allocator below is jemalloc where it is linked in, which keeps freed pages
// and asks for huge ones: without that, scratch memory is mapped and page-faulted anew in every
// step.
#pragma once

#include "strategies/runtime/device.h"

namespace stratagem::backends {

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

runtime::MemoryStatistics memory_of(MemoryAccount account);
/// The peak starts anew from what is allocated now.
void reset_peak_of(MemoryAccount account);

}  // namespace stratagem::backends
