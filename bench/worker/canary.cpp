#include "bench/worker/canary.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/worker/session.h"

namespace stratagem::bench {
namespace {

// About 20 ms on a core with vectors of 512 bits, and on a GPU.
constexpr std::int64_t cpu_size = 1024;
constexpr std::int64_t cuda_size = 8192;

/// Computes one product for each core, each product with all cores of the device.
double fastest_product_ms(const runtime::DeviceDescription& device) {
  const c10::AutoGradMode no_gradient(false);
  const bool cuda = device.kind == runtime::DeviceKind::cuda;
  const std::int64_t size = cuda ? cuda_size : cpu_size;
  const at::Tensor factor =
      at::ones({size, size}, at::TensorOptions(backends::torch_device(device)).dtype(at::kFloat));
  at::Tensor product = at::empty_like(factor);
  CanaryTimes times;
  std::chrono::duration<double, std::milli> took{};
  do {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t core = 0; core < std::max<std::size_t>(device.cores.size(), 1); ++core) {
      at::mm_out(product, factor, factor);
    }
    if (cuda) product[0][0].item();  // waits
    took = std::chrono::steady_clock::now() - start;
  } while (times.should_continue(took.count()));
  return times.fastest_ms();
}

}  // namespace

bool CanaryTimes::should_continue(double product_ms) {
  total_ms_ += product_ms;
  if (++made_ == 1) return true;
  second_ms_ = std::min(second_ms_, std::max(fastest_ms_, product_ms));
  fastest_ms_ = std::min(fastest_ms_, product_ms);
  if (made_ <= fewest_products) return true;
  return made_ <= most_products && total_ms_ <= longest_ms && second_ms_ > (1 + same) * fastest_ms_;
}

Canary::Canary(const Config& config, const TaskContext& context)
    : context_(context),
      devices_(device_options(config, placement_of(config), context)),
      timeout_(to_milliseconds(config.timeout)) {
  devices_.activity = nullptr;  // the last action stays the task's
}

std::vector<double> Canary::milliseconds() const {
  std::vector<double> own;  // outlives the threads that write it
  const backends::DeviceGroup group = backends::make_device_group(devices_);
  own.resize(group.devices.size());
  all_gather_json(context_, nullptr);  // every rank has arrived
  for (std::size_t index = 0; index < own.size(); ++index) {
    const runtime::Device& device = *group.devices[index];
    group.devices[index]->enqueue(runtime::Stream::compute, "canary", [&own, &device, index] {
      own[index] = fastest_product_ms(device.description());
    });
  }
  runtime::synchronize_all(group.devices, timeout_);
  std::vector<double> all;
  for (const nlohmann::json& rank : all_gather_json(context_, own)) {
    for (const nlohmann::json& device : rank) all.push_back(device.get<double>());
  }
  return all;
}

}  // namespace stratagem::bench
