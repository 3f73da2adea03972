// What the measurement runs on, as facts of the operating system.
//
// Two results may be compared only when their hardware facts agree; the software facts explain a
// difference. Nothing here touches a tensor or starts a program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reports/record.h"

namespace stratagem::bench {

/// Where the kernel's files lie; tests put their own there.
struct SystemPaths {
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
};

/// The logical processors that this process may run on, ascending.
std::vector<int> affinity_mask();

/// One logical processor of each physical core in `mask`, the NUMA node with the most of them
/// first, ascending within a node: device 0 gets the first ones, and devices that work together
/// share a memory controller.
std::vector<int> one_per_core(const std::vector<int>& mask, const SystemPaths& paths = {});

/// one_per_core of this process's affinity mask: the cores that CPU devices are given.
std::vector<int> available_cores();

std::string host_name();

/// TMPDIR, else the system's. Throws std::invalid_argument, with the variable, where that is no
/// folder.
std::filesystem::path temporary_folder();

struct MachineFacts {
  std::string cpu_model;
  int logical_cpus = 0;
  int physical_cores = 0;
  int available_cores = 0;
  int numa_nodes = 1;
  double nominal_mhz = 0;
  double memory_gib = 0;
  std::string huge_pages;  // always, madvise, never
  std::string governor;    // "none" where the kernel sets no frequency
  std::string kernel;      // its release
  std::string microcode;   // empty where the kernel does not say
  std::string smt;         // "on", "off", or empty
  std::vector<double> load_average;
  std::vector<std::string> gpu_models;
  std::string gpu_driver;  // empty without one

  /// Whether a governor sets the clock by the load.
  bool clock_scales() const { return governor != "none" && governor != "performance"; }
};

MachineFacts machine_facts(const SystemPaths& paths = {});

/// Returns whether $STRATAGEM_UNTIMED is set. Tests set it because they ignore times: no canary
/// runs, calibrations are as short as possible and are kept even if they were disturbed, and
/// launches on CPUs are forks of one process.
bool is_untimed();

/// The variables of this process's environment by which libraries choose threads, kernels, memory
/// and transports, as "NAME=value ...", ascending; workers inherit them. OMP_NUM_THREADS is not
/// one: no worker sees it.
std::string library_settings();

/// ISO 8601 with offset, to the second.
std::string time_now();

/// The allocator that this executable was linked with.
std::string allocator_name();
/// The LibTorch that this executable was built with; empty without one.
std::string torch_version();
/// Where the LibTorch that is loaded lies; empty without one.
std::string torch_library_path();
/// The GNU build id of that library; empty without one.
std::string torch_build_id();
/// The GNU build id of the running executable: changes whenever its code does.
std::string build_id();

/// The context of a results file, without calibration and metrics.
reports::Context make_context(const std::string& command_line);

}  // namespace stratagem::bench
