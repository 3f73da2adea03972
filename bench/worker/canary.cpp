#include "bench/worker/canary.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/worker/session.h"

namespace stratagem::bench {
namespace {

// About 20 ms of a core with vectors of 512 bits, and of a GPU.
constexpr std::int64_t cpu_size = 1024;
constexpr std::int64_t cuda_size = 8192;

// The fastest speaks for the device: while the two fastest differ, something came in between.
constexpr double same = 0.02;
constexpr int fewest_products = 2;
constexpr int most_products = 10;
constexpr double longest_ms = 300;

/// One product for each core: a device of several computes each with all of them.
double fastest_product_ms(const runtime::DeviceDescription& device) {
  const c10::AutoGradMode no_gradient(false);
  const bool cuda = device.kind == runtime::DeviceKind::cuda;
  const std::int64_t size = cuda ? cuda_size : cpu_size;
  const at::Tensor factor =
      at::ones({size, size}, at::TensorOptions(backends::torch_device(device)).dtype(at::kFloat));
  at::Tensor product = at::empty_like(factor);
  double fastest = std::numeric_limits<double>::infinity();
  double second = fastest;
  double total = 0;
  const auto enough = [&](int made) {
    if (made <= fewest_products) return false;
    return made > most_products || total > longest_ms || second <= (1 + same) * fastest;
  };
  for (int made = 0; !enough(made); ++made) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t core = 0; core < std::max<std::size_t>(device.cores.size(), 1); ++core) {
      at::mm_out(product, factor, factor);
    }
    if (cuda) product[0][0].item();  // waits
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    total += took.count();
    if (made == 0) continue;  // to warm up
    second = std::min(second, std::max(fastest, took.count()));
    fastest = std::min(fastest, took.count());
  }
  return fastest;
}

}  // namespace

Canary::Canary(const Config& config, const TaskContext& context)
    : context_(context),
      devices_(device_options(config, placement_of(config), context)),
      timeout_(to_milliseconds(config.timeout)) {
  devices_.activity = nullptr;  // whose last action is the task's
}

std::vector<double> Canary::milliseconds() const {
  std::vector<double> own;  // outlives the threads that write it
  const backends::DeviceGroup group = backends::make_device_group(devices_);
  own.resize(group.devices.size());
  all_gather_json(context_, nullptr);  // every rank has come so far
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
