#include <ATen/Parallel.h>

#include <utility>

#include "models/cpu_kernels/reference_kernels.h"
#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"
#include "strategies/runtime/cpu_device.h"

namespace stratagem::backends {

std::unique_ptr<runtime::Device> make_cpu_device(runtime::DeviceDescription description,
                                                 std::shared_ptr<runtime::Monitor> monitor,
                                                 runtime::ProgressPage* activity,
                                                 bool reference_kernels) {
  const MemoryAccount account = account_of(description);
  const int threads = description.cores.empty() ? 1 : static_cast<int>(description.cores.size());
  runtime::CpuDevice::Options options;
  options.on_start = [account, threads, reference_kernels] {
    use_account(account);
    models::use_reference_kernels(reference_kernels);
    // The first call reads the environment and would overwrite an earlier setting.
    at::get_num_threads();
    at::set_num_threads(threads);
  };
  options.memory = {[account] { return memory_of(account); },
                    [account] { reset_peak_of(account); }};
  options.activity = activity;
  return std::make_unique<runtime::CpuDevice>(std::move(description), std::move(monitor),
                                              std::move(options));
}

DeviceGroup make_device_group(const DeviceGroupOptions& options) {
  DeviceGroup group;
  group.monitor = std::make_shared<runtime::Monitor>(options.on_overrun);
  const bool cuda = options.kind == runtime::DeviceKind::cuda;
  const std::size_t count = cuda ? options.ordinals.size() : options.cores.size();
  for (std::size_t index = 0; index < count; ++index) {
    runtime::DeviceDescription description;
    description.index = static_cast<int>(index);
    description.kind = options.kind;
    if (cuda) {
      description.ordinal = options.ordinals[index];
      description.separate_copy_stream = true;
      group.devices.push_back(
          make_cuda_device(description, group.monitor, options.activity, options.ordinals));
    } else {
      description.cores = options.cores[index];
      group.devices.push_back(
          make_cpu_device(description, group.monitor, options.activity, options.reference_kernels));
    }
  }
  return group;
}

}  // namespace stratagem::backends
