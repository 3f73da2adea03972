// A process's devices for LibTorch. This is the one place that chooses the kind of a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "strategies/runtime/device.h"
#include "strategies/runtime/monitor.h"
#include "strategies/runtime/progress_page.h"

namespace stratagem::backends {

struct DeviceGroupOptions {
  runtime::DeviceKind kind = runtime::DeviceKind::cpu;
  /// [device]: the cores to which it is pinned; their number is its number of threads.
  std::vector<std::vector<int>> cores;
  /// [device]: the GPU, for CUDA only. Two devices share a GPU that is listed twice.
  std::vector<int> ordinals;
  runtime::ProgressPage* activity = nullptr;
  runtime::Monitor::OverrunHandler on_overrun = {};
  bool reference_kernels = false;  // CPU only: they compute only with ATen's functions
};

struct DeviceGroup {
  std::shared_ptr<runtime::Monitor> monitor;
  std::vector<std::unique_ptr<runtime::Device>> devices;
};

/// Throws std::invalid_argument, in one line, for a missing GPU or a build without CUDA.
DeviceGroup make_device_group(const DeviceGroupOptions& options);

/// Makes one pinned thread that computes with as many threads as it has cores, with our or the
/// reference kernels. Its index names its account; throws like account_of() (memory_accounting.h).
std::unique_ptr<runtime::Device> make_cpu_device(runtime::DeviceDescription description,
                                                 std::shared_ptr<runtime::Monitor> monitor,
                                                 runtime::ProgressPage* activity,
                                                 bool reference_kernels = false);

/// Makes a GPU and its streams, driven by one thread. `ordinals` are those of all GPUs of the
/// group, from which it copies.
std::unique_ptr<runtime::Device> make_cuda_device(runtime::DeviceDescription description,
                                                  std::shared_ptr<runtime::Monitor> monitor,
                                                  runtime::ProgressPage* activity,
                                                  const std::vector<int>& ordinals);

/// Returns the number of usable GPUs; 0 in a build without CUDA.
int cuda_device_count();

/// [ordinal]: the UUID of each usable GPU, which does not depend on a mask's numbers.
std::vector<std::string> cuda_identities();

/// The memory and the computing resources of a device.
struct DeviceCapacity {
  std::string name = {};
  double memory_bytes = 0;
  double cores = 0;  // a GPU's multiprocessors
};

/// Returns the capacity of a usable GPU.
DeviceCapacity cuda_capacity(int ordinal);

at::Device torch_device(const runtime::DeviceDescription& description);

/// Copies `source`, detached, into memory of the calling thread's device, also from CPU to CPU, and
/// keeps the memory layout. On CUDA it is asynchronous, on the current stream.
at::Tensor copy_to(const at::Tensor& source, const runtime::DeviceDescription& target);

/// Marks a tensor of another stream as used by the current stream. Does nothing on a CPU.
void mark_used(const at::Tensor& tensor);

/// Returns when the current stream of the tensor's GPU has done all its work. Does nothing on a
/// CPU.
void finish(const at::Tensor& tensor);

}  // namespace stratagem::backends
