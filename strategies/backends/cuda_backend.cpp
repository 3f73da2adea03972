// The CUDA device: a GPU's compute and copy streams, driven by one thread, so that the host
// enqueues a whole step ahead, as for CPU devices. g++ compiles it, because it has no kernels of
// ours.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/backends/cuda_event.h"
#include "strategies/backends/cuda_stream.h"
#include "strategies/runtime/launched_work.h"
#include "strategies/runtime/work_queue.h"

namespace stratagem::backends {
namespace {

/// Marks a piece of work in a profile, even if it throws.
class ProfileRange {
 public:
  explicit ProfileRange(const std::string& label) { nvtxRangePushA(label.c_str()); }
  ~ProfileRange() { nvtxRangePop(); }
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;
};

/// Stamps have their own stream: on a shared one, a stamp would also wait for what other stamps
/// await.
class CudaEndStamps final : public runtime::EndStamps {
 public:
  CudaEndStamps(runtime::Device& device, c10::DeviceIndex ordinal)
      : device_(device), stream_(ordinal) {}

  runtime::EventPointer stamp_behind(const std::function<void()>& wait) override {
    const c10::cuda::CUDAStreamGuard guard(stream_.get());
    wait();
    return device_.stamp();
  }

 private:
  runtime::Device& device_;
  OwnStream stream_;
};

class CudaDevice final : public runtime::Device {
 public:
  CudaDevice(runtime::DeviceDescription description, std::shared_ptr<runtime::Monitor> monitor,
             runtime::ProgressPage* activity, const std::vector<int>& ordinals)
      : runtime::Device(std::move(description)),
        monitor_(monitor),
        ordinal_(static_cast<c10::DeviceIndex>(this->description().ordinal)),
        compute_(ordinal_),
        copy_(ordinal_),
        sources_(streams_of_others(ordinals)),
        anchor_(make_anchor()),
        launched_(monitor_, this->description().name()),
        queue_(std::move(monitor), {this->description().name(), [this] { set_up_thread(); },
                                    activity, this->description().index}) {}

  void enqueue(runtime::Stream stream, std::string label, std::function<void()> work) override {
    const c10::cuda::CUDAStream target = stream_of(stream);
    queue_.push(label, [target, label, work = std::move(work)] {
      const c10::cuda::CUDAStreamGuard guard(target);
      const ProfileRange range(label);
      work();
    });
  }

  runtime::TimedWork enqueue_timed(runtime::Stream stream, std::string label,
                                   std::function<void()> work) override {
    runtime::TimedWork events = runtime::Device::enqueue_timed(stream, label, std::move(work));
    launched_.add(stream, std::move(label), events.end);
    return events;
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

  std::unique_ptr<runtime::EndStamps> make_end_stamps() override {
    return std::make_unique<CudaEndStamps>(*this, ordinal_);
  }

  void wait(runtime::Stream stream, runtime::EventPointer event) override {
    const c10::cuda::CUDAStream target = stream_of(stream);
    queue_.enqueue_wait("a wait", [event = std::move(event), target, monitor = monitor_] {
      const auto cuda = std::dynamic_pointer_cast<CudaEvent>(event);
      if (cuda == nullptr) {  // a CPU device's event: the thread waits instead of the stream
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
    launched_.wait([this] { return compute_.get().query() && copy_.get().query(); }, limit);
  }

  void wait_on_host(const runtime::Event& event, std::chrono::milliseconds limit) override {
    const auto& own = dynamic_cast<const CudaEvent&>(event);
    queue_.wait_for([&own] { return own.recorded(); }, limit);
    launched_.wait([&own] { return own.complete(); }, limit);
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
  /// Returns streams for copies from other GPUs. LibTorch copies between GPUs on the source's
  /// current stream, which otherwise all of the source's receivers would share.
  std::vector<std::unique_ptr<OwnStream>> streams_of_others(std::vector<int> ordinals) const {
    std::ranges::sort(ordinals);
    ordinals.erase(std::unique(ordinals.begin(), ordinals.end()), ordinals.end());
    std::erase(ordinals, static_cast<int>(ordinal_));
    std::vector<std::unique_ptr<OwnStream>> streams;
    for (const int other : ordinals) {
      streams.push_back(std::make_unique<OwnStream>(static_cast<c10::DeviceIndex>(other)));
    }
    return streams;
  }

  void set_up_thread() const {
    for (const auto& source : sources_) c10::cuda::setCurrentCUDAStream(source->get());
    c10::cuda::set_device(ordinal_);
  }

  /// Records an event between two readings of the host's clock. The closest pair of a few tries
  /// counts, so the time is exact to half of their distance, some 10 us.
  std::shared_ptr<const Anchor> make_anchor() const {
    constexpr int tries = 5;
    const c10::cuda::CUDAGuard guard(ordinal_);
    C10_CUDA_CHECK(cudaStreamSynchronize(compute_.get().stream()));
    std::shared_ptr<Anchor> best;
    auto closest = SteadyTime::duration::max();
    for (int made = 0; made < tries; ++made) {
      auto anchor = std::make_shared<Anchor>(ordinal_);
      const SteadyTime before = std::chrono::steady_clock::now();
      C10_CUDA_CHECK(cudaEventRecord(anchor->event.get(), compute_.get().stream()));
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
    return (stream == runtime::Stream::copy ? copy_ : compute_).get();
  }

  std::shared_ptr<runtime::Monitor> monitor_;
  c10::DeviceIndex ordinal_;
  OwnStream compute_;
  OwnStream copy_;
  std::vector<std::unique_ptr<OwnStream>> sources_;  // streams on the group's other GPUs
  std::shared_ptr<const Anchor> anchor_;
  runtime::LaunchedWork launched_;
  runtime::WorkQueue queue_;
};

/// Sets up LibTorch's allocator and streams once, which is necessary outside Python.
void initialise_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::cuda::CUDACachingAllocator::init(static_cast<int>(c10::cuda::device_count()));
  });
}

}  // namespace

int cuda_device_count() { return static_cast<int>(c10::cuda::device_count()); }

std::vector<std::string> cuda_identities() {
  std::vector<std::string> all;
  for (int ordinal = 0; ordinal < cuda_device_count(); ++ordinal) {
    cudaDeviceProp properties{};
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal));
    std::string& uuid = all.emplace_back();
    for (const char byte : properties.uuid.bytes) {
      uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return all;
}

DeviceCapacity cuda_capacity(int ordinal) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal));
  return {.name = fmt::format("cuda:{}", ordinal),
          .memory_bytes = static_cast<double>(properties.totalGlobalMem),
          .cores = static_cast<double>(properties.multiProcessorCount)};
}

std::unique_ptr<runtime::Device> make_cuda_device(runtime::DeviceDescription description,
                                                  std::shared_ptr<runtime::Monitor> monitor,
                                                  runtime::ProgressPage* activity,
                                                  const std::vector<int>& ordinals) {
  const int count = cuda_device_count();
  for (const int ordinal : ordinals) {
    if (ordinal >= 0 && ordinal < count) continue;
    throw std::invalid_argument(
        fmt::format("--device-ids: GPU {} does not exist; there are {}", ordinal, count));
  }
  initialise_allocator();
  return std::make_unique<CudaDevice>(std::move(description), std::move(monitor), activity,
                                      ordinals);
}

}  // namespace stratagem::backends
