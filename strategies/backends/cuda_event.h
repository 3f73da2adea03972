// Events of a GPU and its clock. Only the files of the CUDA backend include this.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "strategies/runtime/device.h"

namespace stratagem::backends {

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

/// A device's clock: one event whose moment on the host's clock is known. Events count from there
/// in single precision: to 1 us for 8 s, to 16 us for two minutes.
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
    (void)cudaGetLastError();  // otherwise the thread's next launch would report it
    return false;
  }

  /// Returns the stamp's time, which may be a moment later than the awaited event.
  SteadyTime time() const override {
    const c10::cuda::CUDAGuard guard(ordinal_);
    C10_CUDA_CHECK(cudaEventSynchronize(event_.get()));
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, anchor_->event.get(), event_.get()));
    const std::chrono::duration<double, std::milli> since(milliseconds);
    return anchor_->time + std::chrono::duration_cast<SteadyTime::duration>(since);
  }

  /// Returns whether the device's thread has put it on its stream: a stream that waits for it
  /// earlier would not wait at all.
  bool recorded() const { return recorded_.load(std::memory_order_acquire); }
  void set_recorded() { recorded_.store(true, std::memory_order_release); }
  cudaEvent_t get() const { return event_.get(); }

 private:
  c10::DeviceIndex ordinal_;
  RawEvent event_;
  std::shared_ptr<const Anchor> anchor_;
  std::atomic<bool> recorded_{false};
};

}  // namespace stratagem::backends
