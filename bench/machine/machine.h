// The facts of the operating system on the machine that a measurement runs on.
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

/// The folders of the kernel's files; tests use their own.
struct SystemPaths {
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
};

/// Returns the logical processors that this process may run on, ascending.
std::vector<int> affinity_mask();

/// Returns one logical processor of each physical core in `mask`, the NUMA node with the most of
/// them first, ascending within a node: device 0 gets the first ones, and devices that work
/// together share a memory controller.
std::vector<int> one_per_core(const std::vector<int>& mask, const SystemPaths& paths = {});

/// Returns one_per_core() of this process's affinity mask: the cores for CPU devices.
std::vector<int> available_cores();

std::string host_name();

/// Returns TMPDIR, else the system's folder. Throws std::invalid_argument, with the variable, if
/// that is not a folder.
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
  std::string governor;    // "none" if the kernel sets no frequency
  std::string kernel;      // release
  std::string microcode;   // empty if unknown
  std::string smt;         // "on", "off", or empty
  std::vector<double> load_average;
  std::vector<std::string> gpu_models;
  std::string gpu_driver;  // empty without a GPU

  /// Returns whether a governor sets the clock by the load.
  bool clock_scales() const { return governor != "none" && governor != "performance"; }
};

MachineFacts machine_facts(const SystemPaths& paths = {});

/// Returns whether $STRATAGEM_UNTIMED is set. Tests set it because they ignore times: no canary
/// runs, calibrations are as short as possible and are kept even if they were disturbed, and
/// launches on CPUs are forks of one process.
bool is_untimed();

/// Returns the environment variables by which libraries choose threads, kernels, memory and
/// transports, as "NAME=value ...", ascending; workers inherit them. OMP_NUM_THREADS is not one: no
/// worker sees it.
std::string library_settings();

/// Returns the time in ISO 8601 with offset, to the second.
std::string time_now();

/// Returns the allocator that this executable was linked with.
std::string allocator_name();
/// Returns the LibTorch that this executable was built with; empty without one.
std::string torch_version();
/// Returns the path of the loaded LibTorch; empty without one.
std::string torch_library_path();
/// Returns the GNU build id of that library; empty without one.
std::string torch_build_id();
/// Returns the GNU build id of the running executable, which changes with its code.
std::string build_id();

/// Returns the context of a results file, without calibration and metrics.
reports::Context make_context(const std::string& command_line);

}  // namespace stratagem::bench
