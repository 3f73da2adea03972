// The CUDA device: a GPU's compute and copy streams, driven by a thread of its own, so that the
// host enqueues a whole step ahead as it does for CPU devices. Compiled by g++ alone: there are no
// kernels of ours.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/runtime/work_queue.h"

namespace stratagem::backends {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

/// An event of the CUDA runtime that is destroyed with its owner.
class RawEvent {
 public:
  explicit RawEvent(int ordinal) : ordinal_(ordinal) {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(ordinal_));
    C10_CUDA_CHECK(cudaEventCreate(&event_));
  }
  ~RawEvent() {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(ordinal_));
    C10_CUDA_CHECK_WARN(cudaEventDestroy(event_));
  }
  RawEvent(const RawEvent&) = delete;
  RawEvent& operator=(const RawEvent&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  int ordinal_;
  cudaEvent_t event_ = nullptr;
};

/// A device's clock: one event whose moment on the host's clock is known. Events count in single
/// precision from there: to 1 us for 8 s, to 16 us for two minutes.
struct Anchor {
  explicit Anchor(int ordinal) : event(ordinal) {}
  RawEvent event;
  SteadyTime time{};
};

class CudaEvent final : public runtime::Event {
 public:
  CudaEvent(int ordinal, std::shared_ptr<const Anchor> anchor)
      : ordinal_(static_cast<c10::DeviceIndex>(ordinal)),
        event_(ordinal),
        anchor_(std::move(anchor)) {}

  bool complete() const override {
    if (!recorded()) return false;
    const c10::cuda::CUDAGuard guard(ordinal_);
    const cudaError_t answer = cudaEventQuery(event_.get());
    if (answer == cudaSuccess) return true;
    if (answer != cudaErrorNotReady) C10_CUDA_CHECK(answer);
    (void)cudaGetLastError();  // else the thread's next launch would be told of it
    return false;
  }

  SteadyTime time() const override {
    const c10::cuda::CUDAGuard guard(ordinal_);
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, anchor_->event.get(), event_.get()));
    const std::chrono::duration<double, std::milli> since(milliseconds);
    return anchor_->time + std::chrono::duration_cast<SteadyTime::duration>(since);
  }

  /// Whether the device's thread has put it on its stream: before that a stream that waits for it
  /// would not wait at all.
  bool recorded() const { return recorded_.load(std::memory_order_acquire); }
  void set_recorded() { recorded_.store(true, std::memory_order_release); }
  cudaEvent_t get() const { return event_.get(); }

 private:
  c10::DeviceIndex ordinal_;
  RawEvent event_;
  std::shared_ptr<const Anchor> anchor_;
  std::atomic<bool> recorded_{false};
};

class CudaDevice final : public runtime::Device {
 public:
  CudaDevice(runtime::DeviceDescription description, std::shared_ptr<runtime::Monitor> monitor,
             runtime::ProgressPage* activity)
      : runtime::Device(std::move(description)),
        monitor_(monitor),
        ordinal_(static_cast<c10::DeviceIndex>(this->description().ordinal)),
        compute_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, ordinal_)),
        copy_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, ordinal_)),
        anchor_(make_anchor()),
        queue_(std::move(monitor), {this->description().name(),
                                    [ordinal = ordinal_] { c10::cuda::set_device(ordinal); },
                                    activity, this->description().index}) {}

  void enqueue(runtime::Stream stream, std::string label, std::function<void()> work) override {
    const c10::cuda::CUDAStream target = stream_of(stream);
    queue_.push(label, [target, label, work = std::move(work)] {
      const c10::cuda::CUDAStreamGuard guard(target);
      nvtxRangePushA(label.c_str());
      work();
      nvtxRangePop();
    });
  }

  runtime::EventPointer record(runtime::Stream stream) override {
    auto event = std::make_shared<CudaEvent>(ordinal_, anchor_);
    const c10::cuda::CUDAStream target = stream_of(stream);
    queue_.push({}, [event, target, monitor = monitor_] {
      C10_CUDA_CHECK(cudaEventRecord(event->get(), target.stream()));
      monitor->update([&] { event->set_recorded(); });
    });
    return event;
  }

  runtime::EventPointer stamp() override {
    auto event = std::make_shared<CudaEvent>(ordinal_, anchor_);
    const c10::cuda::CUDAGuard guard(ordinal_);
    C10_CUDA_CHECK(
        cudaEventRecord(event->get(), c10::cuda::getCurrentCUDAStream(ordinal_).stream()));
    monitor_->update([&] { event->set_recorded(); });
    return event;
  }

  void wait(runtime::Stream stream, runtime::EventPointer event) override {
    const c10::cuda::CUDAStream target = stream_of(stream);
    queue_.enqueue_wait("a wait", [event = std::move(event), target, monitor = monitor_] {
      const auto cuda = std::dynamic_pointer_cast<CudaEvent>(event);
      if (cuda == nullptr) {  // of a CPU device: the thread waits in the stream's place
        monitor->wait([&] { return event->complete(); });
        return;
      }
      if (monitor->wait([&] { return cuda->recorded(); })) {
        C10_CUDA_CHECK(cudaStreamWaitEvent(target.stream(), cuda->get(), 0));
      }
    });
  }

  void synchronize(std::chrono::milliseconds limit) override {
    queue_.drain(limit);
    wait_for_kernels([this] { return compute_.query() && copy_.query(); }, limit);
  }

  void wait_on_host(const runtime::Event& event, std::chrono::milliseconds limit) override {
    const auto& own = dynamic_cast<const CudaEvent&>(event);
    queue_.wait_for([&own] { return own.recorded(); }, limit);
    wait_for_kernels([&own] { return own.complete(); }, limit);
  }

  runtime::MemoryStatistics memory() const override {
    const auto statistics = c10::cuda::CUDACachingAllocator::getDeviceStats(ordinal_);
    const auto& all =
        statistics
            .allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    return {all.current, all.peak};
  }

  void synchronize_clock() override { anchor_ = make_anchor(); }

  void reset_peak_memory() override { c10::cuda::CUDACachingAllocator::resetPeakStats(ordinal_); }

 private:
  void wait_for_kernels(const std::function<bool()>& ended, std::chrono::milliseconds limit) const {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!ended()) {
      monitor_->rethrow_if_failed();
      if (std::chrono::steady_clock::now() > deadline) {
        throw runtime::DeviceTimeout(
            fmt::format("{} has not finished its kernels within {:.3g} s (--timeout)",
                        description().name(), std::chrono::duration<double>(limit).count()));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  /// The event lies between two readings of the host's clock, of which the closest pair of a few
  /// is taken: it is known to half of their distance, some 10 us.
  std::shared_ptr<const Anchor> make_anchor() const {
    constexpr int tries = 5;
    const c10::cuda::CUDAGuard guard(ordinal_);
    C10_CUDA_CHECK(cudaStreamSynchronize(compute_.stream()));
    std::shared_ptr<Anchor> best;
    auto closest = SteadyTime::duration::max();
    for (int made = 0; made < tries; ++made) {
      auto anchor = std::make_shared<Anchor>(ordinal_);
      const SteadyTime before = std::chrono::steady_clock::now();
      C10_CUDA_CHECK(cudaEventRecord(anchor->event.get(), compute_.stream()));
      C10_CUDA_CHECK(cudaEventSynchronize(anchor->event.get()));
      const SteadyTime::duration apart = std::chrono::steady_clock::now() - before;
      anchor->time = before + apart / 2;
      if (apart >= closest) continue;
      closest = apart;
      best = std::move(anchor);
    }
    return best;
  }

  c10::cuda::CUDAStream stream_of(runtime::Stream stream) const {
    return stream == runtime::Stream::copy ? copy_ : compute_;
  }

  std::shared_ptr<runtime::Monitor> monitor_;
  c10::DeviceIndex ordinal_;
  c10::cuda::CUDAStream compute_;
  c10::cuda::CUDAStream copy_;
  std::shared_ptr<const Anchor> anchor_;
  runtime::WorkQueue queue_;
};

/// LibTorch's allocator and streams are set up once, by hand outside Python.
void initialise_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::cuda::CUDACachingAllocator::init(static_cast<int>(c10::cuda::device_count()));
  });
}

}  // namespace

int cuda_device_count() { return static_cast<int>(c10::cuda::device_count()); }

DeviceCapacity cuda_capacity(int ordinal) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal));
  return {.name = fmt::format("cuda:{}", ordinal),
          .memory_bytes = static_cast<double>(properties.totalGlobalMem),
          .cores = static_cast<double>(properties.multiProcessorCount)};
}

std::unique_ptr<runtime::Device> make_cuda_device(runtime::DeviceDescription description,
                                                  std::shared_ptr<runtime::Monitor> monitor,
                                                  runtime::ProgressPage* activity) {
  const int count = cuda_device_count();
  if (description.ordinal < 0 || description.ordinal >= count) {
    throw std::invalid_argument(fmt::format("--device-ids: GPU {} does not exist; there are {}",
                                            description.ordinal, count));
  }
  initialise_allocator();
  return std::make_unique<CudaDevice>(std::move(description), std::move(monitor), activity);
}

}  // namespace stratagem::backends
