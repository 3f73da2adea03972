// The devices of a process, made for LibTorch. The one place where a kind of device is chosen.
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
  /// [device]: the cores that it is pinned to, and computes with; their number is its threads.
  std::vector<std::vector<int>> cores;
  /// [device]: CUDA only, which GPU. A GPU twice is shared.
  std::vector<int> ordinals;
  runtime::ProgressPage* activity = nullptr;
  runtime::Monitor::OverrunHandler on_overrun = {};
  bool reference_kernels = false;  // CPU only: they compute with ATen's functions alone
};

struct DeviceGroup {
  std::shared_ptr<runtime::Monitor> monitor;
  std::vector<std::unique_ptr<runtime::Device>> devices;
};

/// Throws std::invalid_argument in one line: no such GPU, a build without CUDA.
DeviceGroup make_device_group(const DeviceGroupOptions& options);

/// One pinned thread that computes with as many threads as it has cores, by our kernels or by the
/// reference ones. Its index names its account; throws as account_of() does (memory_accounting.h).
std::unique_ptr<runtime::Device> make_cpu_device(runtime::DeviceDescription description,
                                                 std::shared_ptr<runtime::Monitor> monitor,
                                                 runtime::ProgressPage* activity,
                                                 bool reference_kernels = false);

/// A GPU and its streams, driven by a thread of its own. `ordinals` are those of all GPUs of the
/// group: it copies from them.
std::unique_ptr<runtime::Device> make_cuda_device(runtime::DeviceDescription description,
                                                  std::shared_ptr<runtime::Monitor> monitor,
                                                  runtime::ProgressPage* activity,
                                                  const std::vector<int>& ordinals);

/// How many GPUs can be used; 0 in a build without CUDA.
int cuda_device_count();

/// [ordinal]: the UUID of each GPU that can be used, whatever number a mask gives it.
std::vector<std::string> cuda_identities();

/// What a device can hold and compute with.
struct DeviceCapacity {
  std::string name = {};
  double memory_bytes = 0;
  double cores = 0;  // of a GPU, its multiprocessors
};

/// Of a GPU that can be used.
DeviceCapacity cuda_capacity(int ordinal);

at::Device torch_device(const runtime::DeviceDescription& description);

/// Copies `source` into memory of the device whose thread calls, also from CPU to CPU, keeping the
/// memory layout. Detached. On CUDA it is asynchronous, on the current stream.
at::Tensor copy_to(const at::Tensor& source, const runtime::DeviceDescription& target);

/// Says that the current stream uses a tensor that another stream made. Nothing on a CPU.
void mark_used(const at::Tensor& tensor);

/// Returns when the current stream of the tensor's GPU has done all that it was given. Nothing on a
/// CPU.
void finish(const at::Tensor& tensor);

}  // namespace stratagem::backends
