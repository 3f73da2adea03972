// The processor's instruction sets and caches, and the hypervisor, as the kernel lists them.
#pragma once

#include <string>
#include <vector>

#include "bench/machine/machine.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Returns the extensions by which math libraries choose their kernels, as the kernel names them:
/// "avx2 fma avx512f". Variables such as ONEDNN_MAX_CPU_ISA can forbid a library some of them.
std::string instruction_sets(const SystemPaths& paths = {});

/// Returns the virtual machine's maker or product; empty if the kernel runs on the hardware, and
/// "unknown" if the virtual machine does not name itself.
std::string hypervisor(const SystemPaths& paths = {});

/// Returns the caches that processor 0 can use, the nearest first.
std::vector<reports::Cache> caches(const SystemPaths& paths = {});

}  // namespace stratagem::bench
