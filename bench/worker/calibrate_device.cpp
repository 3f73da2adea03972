// calibrate_device: the rates that a device can reach, for utilisation and for the simulator.
//
// The peak is the best of the libraries that a training step may use: on a CPU, MKL's and oneDNN's
// matrix product and oneDNN's convolution differ by a factor of two.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/worker/session.h"
#include "models/cpu_kernels/linear.h"
#include "reports/statistics.h"

namespace stratagem::bench {
namespace {

using Clock = std::chrono::steady_clock;
using backends::finish;

/// Returns the seconds of several calls on the device's thread, within about `budget`.
std::vector<double> times_of(runtime::Device& device, std::chrono::milliseconds limit,
                             Clock::duration budget, const std::function<void()>& work) {
  std::vector<double> times;
  device.enqueue(runtime::Stream::compute, "calibrate", [&] {
    const c10::AutoGradMode no_gradient(false);
    work();
    const auto begin = Clock::now();
    do {
      const auto start = Clock::now();
      work();
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    } while (Clock::now() - begin < budget);
  });
  device.synchronize(limit);
  return times;
}

class Calibration {
 public:
  Calibration(const Config& config, const TaskContext& context)
      : config_(config),
        effort_(context.calibration),
        group_(open_devices(config, placement_of(config), context)),
        options_(at::TensorOptions(backends::torch_device(first().description()))
                     .dtype(workload_options(config).dtype)) {}

  CalibrateDeviceResult run() {
    return {.gemm_gflops = gemm_gflops(),
            .convolution_gflops = convolution_gflops(),
            .memory_gb_per_s = memory_gigabytes_per_second(),
            .link_gb_per_s = static_cast<double>(link_bytes) / link_seconds(link_bytes) / 1e9,
            .link_latency_ms = link_seconds(latency_bytes) * 1e3,
            .peak_spread = peak_spread_};
  }

 private:
  static constexpr std::int64_t link_bytes = std::int64_t{16} << 20;
  static constexpr std::int64_t latency_bytes = 64;

  runtime::Device& first() { return *group_.devices.front(); }
  runtime::Device& last() { return *group_.devices.back(); }

  /// Makes it on the first device's thread, whose streams wait for no other thread's tensors.
  at::Tensor made(const std::function<at::Tensor()>& make) {
    at::Tensor tensor;
    first().enqueue(runtime::Stream::compute, "calibrate", [&] { tensor = make(); });
    first().synchronize(to_milliseconds(config_.timeout));
    return tensor;
  }

  /// Returns the seconds of the fastest call.
  double time(runtime::Device& device, const std::function<void()>& work) {
    return std::ranges::min(times_of(device, to_milliseconds(config_.timeout), effort_.rate, work));
  }

  /// Returns the same for a call that may give the peak.
  double peak_time(const std::function<void()>& work) {
    const auto times = times_of(first(), to_milliseconds(config_.timeout), effort_.rate, work);
    const double fastest = std::ranges::min(times);
    peak_spread_ = std::max(peak_spread_, reports::median(times) / fastest - 1);
    return fastest;
  }

  double gemm_gflops() {
    // Takes a few milliseconds on a CPU, which another program may leave undisturbed.
    const std::int64_t n = config_.device == "cuda" ? 8192 : 512;
    const at::Tensor a = made([&] { return at::randn({n, n}, options_); });
    const at::Tensor b = made([&] { return at::randn({n, n}, options_); });
    const auto product = [&] { finish(at::mm(a, b)); };
    double seconds = peak_time(product);
    if (config_.device == "cpu" && config_.dtype == "float32") {  // oneDNN's: MKL's may be slower
      seconds =
          std::min(seconds, peak_time([&] { finish(models::linear_product(a, b, at::Tensor())); }));
    }
    return 2.0 * static_cast<double>(n * n * n) / seconds / 1e9;
  }

  double convolution_gflops() {
    const std::int64_t batch = config_.device == "cuda" ? 16 : 2;
    constexpr std::int64_t channels = 128;
    constexpr std::int64_t size = 28;
    constexpr std::int64_t kernel = 3;
    const auto random = [this](at::IntArrayRef shape) {
      return made(
          [&] { return at::randn(shape, options_).contiguous(at::MemoryFormat::ChannelsLast); });
    };
    const at::Tensor x = random({batch, channels, size, size});
    const at::Tensor w = random({channels, channels, kernel, kernel});
    const double seconds =
        peak_time([&] { finish(at::conv2d(x, w, {}, /*stride=*/1, /*padding=*/1)); });
    return 2.0 * static_cast<double>(batch * size * size * channels * channels * kernel * kernel) /
           seconds / 1e9;
  }

  double memory_gigabytes_per_second() {
    const std::int64_t bytes = effort_.copied_bytes;
    const at::Tensor source = made([&] { return at::ones({bytes}, options_.dtype(at::kByte)); });
    const at::Tensor target = made([&] { return at::empty_like(source); });
    const double seconds = time(first(), [&] {
      target.copy_(source);
      finish(target);
    });
    return 2.0 * static_cast<double>(bytes) / seconds / 1e9;  // read and written
  }

  /// Returns the seconds to bring `bytes` from the first device to the last.
  double link_seconds(std::int64_t bytes) {
    const at::Tensor source = made([&] { return at::ones({bytes}, options_.dtype(at::kByte)); });
    return time(last(), [&] { finish(backends::copy_to(source, last().description())); });
  }

  Config config_;
  CalibrationEffort effort_;
  backends::DeviceGroup group_;
  at::TensorOptions options_;
  double peak_spread_ = 0;
};

}  // namespace

CalibrateDeviceResult calibrate_device(const CalibrateDeviceJob& job, const TaskContext& context) {
  return Calibration(job.config, context).run();
}

}  // namespace stratagem::bench
