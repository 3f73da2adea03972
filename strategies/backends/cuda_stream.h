// A separate stream on a GPU. Only the files of the CUDA backend include this.
//
// LibTorch's pool reuses its 32 streams of a priority, and NCCL takes its communicators' streams
// from there: a device's stream from the pool would soon be one of theirs, too, and wait for their
// collectives. A returned stream goes to the next owner, because the allocator keeps freed memory
// by stream, and cuBLAS its workspaces.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace stratagem::backends {

class OwnStream {
 public:
  explicit OwnStream(c10::DeviceIndex ordinal) : stream_(free_streams().take(ordinal)) {}
  ~OwnStream() { free_streams().give_back(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  const c10::cuda::CUDAStream& get() const { return stream_; }

 private:
  class FreeStreams {
   public:
    c10::cuda::CUDAStream take(c10::DeviceIndex ordinal) {
      const std::lock_guard lock(mutex_);
      std::vector<c10::cuda::CUDAStream>& streams = by_ordinal_[ordinal];
      if (streams.empty()) return make(ordinal);
      const c10::cuda::CUDAStream last = streams.back();
      streams.pop_back();
      return last;
    }

    void give_back(const c10::cuda::CUDAStream& stream) {
      const std::lock_guard lock(mutex_);
      by_ordinal_[stream.device_index()].push_back(stream);
    }

   private:
    /// NCCL's streams have a higher priority, so that communication proceeds beside computation.
    static c10::cuda::CUDAStream make(c10::DeviceIndex ordinal) {
      constexpr int normal_priority = 0;
      const c10::cuda::CUDAGuard guard(ordinal);
      cudaStream_t stream = nullptr;
      C10_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, normal_priority));
      return c10::cuda::getStreamFromExternal(stream, ordinal);
    }

    std::mutex mutex_;
    std::map<c10::DeviceIndex, std::vector<c10::cuda::CUDAStream>> by_ordinal_;
  };

  static FreeStreams& free_streams() {
    // The list is never destroyed: tensors may name a stream until the very end of the process.
    static FreeStreams& all = *std::make_unique<FreeStreams>().release();
    return all;
  }

  c10::cuda::CUDAStream stream_;
};

}  // namespace stratagem::backends
