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
  std::size_t threads = 1;
  std::size_t prefetch = 2;  // batches that may be ready, or being filled, ahead of the one in use
  std::chrono::milliseconds timeout{120'000};
};

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

  std::size_t slots() const { return options_.prefetch + 1; }

  /// The slot with the next batch, and releases the one before. Throws what filling it threw, and
  /// std::runtime_error when it does not come within the time limit or there is none.
  std::size_t next();

  /// How long next() has waited so far, and how long the threads' processors have worked.
  std::chrono::nanoseconds waited() const { return waited_; }
  std::chrono::nanoseconds worked() const;

 private:
  void work();
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
  std::chrono::nanoseconds waited_{0};
  std::chrono::nanoseconds worked_{0};
  std::vector<std::jthread> threads_;  // last: they use the rest
};

}  // namespace stratagem::training
