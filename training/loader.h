// Loader: threads that fill batches ahead of the step that trains them, in order, in a ring of
// slots that are used again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace stratagem::training {

struct LoaderOptions {
  std::size_t threads = 1;   // 0: next() fills the batch itself
  std::size_t prefetch = 2;  // batches that may be ready, or being filled, ahead of those in use
  std::size_t in_use = 1;    // batches that have been handed out and stay as they are
  std::chrono::milliseconds timeout{120'000};
};

/// What filling took, over all batches so far.
struct LoaderWork {
  std::size_t threads = 0;  // 0: the caller's own
  std::size_t batches = 0;
  std::chrono::nanoseconds elapsed{0};
  std::chrono::nanoseconds processor{0};
};

void add(LoaderWork& total, const LoaderWork& more);

class Loader {
 public:
  /// Fills `slot` with batch number `batch`, on one of the loader's threads; no two fill one slot
  /// at a time.
  using Fill = std::function<void(std::size_t batch, std::size_t slot)>;

  /// Starts at once. Batches are numbered from 0 to `batches`.
  Loader(std::size_t batches, const LoaderOptions& options, Fill fill);
  /// Waits for the batches that are being filled.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  static std::size_t slots(const LoaderOptions& options) {
    return options.prefetch + options.in_use;
  }

  /// The slot with the next batch, and releases the one that was handed out `in_use` batches
  /// before. Throws what filling it threw, and std::runtime_error when it does not come within the
  /// time limit or there is none.
  std::size_t next();

  LoaderWork worked() const;

 private:
  void work();
  std::exception_ptr filled(std::size_t batch, LoaderWork& work) const;
  bool may_start() const { return started_ < batches_ && started_ < taken_ + options_.prefetch; }

  std::size_t batches_;
  LoaderOptions options_;
  Fill fill_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t started_ = 0;                           // batches whose filling has begun
  std::size_t taken_ = 0;                             // batches that next() has handed out
  std::map<std::size_t, std::exception_ptr> filled_;  // by batch: not taken yet; null: well
  bool stopping_ = false;
  LoaderWork worked_;
  std::vector<std::jthread> threads_;  // last: they use the rest
};

}  // namespace stratagem::training
