// Loader: threads that fill batches in order, ahead of the step that trains them, in a ring of
// reused slots.
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
  std::size_t threads = 1;   // filling threads; 0: next() fills the batch itself
  std::size_t prefetch = 2;  // batches that may be ready, or being filled, ahead of the ones in use
  std::size_t in_use = 1;    // batches that were handed out and must stay unchanged
  std::chrono::milliseconds timeout{120'000};
};

/// The cost of filling all batches so far.
struct LoaderWork {
  std::size_t threads = 0;  // 0: only the caller's own
  std::size_t batches = 0;
  std::chrono::nanoseconds elapsed{0};
  std::chrono::nanoseconds processor{0};
};

void add(LoaderWork& total, const LoaderWork& more);

class Loader {
 public:
  /// Fills `slot` with batch number `batch`, on one of the loader's threads. No two threads fill
  /// the same slot at a time.
  using Fill = std::function<void(std::size_t batch, std::size_t slot)>;

  /// Starts the threads at once. Batches are numbered from 0 to `batches`.
  Loader(std::size_t batches, const LoaderOptions& options, Fill fill);
  /// Waits for the batches that are being filled.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  static std::size_t slots(const LoaderOptions& options) {
    return options.prefetch + options.in_use;
  }

  /// Returns the next batch's slot and releases the one handed out `in_use` batches before. Throws
  /// the exception of its filling, and std::runtime_error after the time limit or the last batch.
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
  std::map<std::size_t, std::exception_ptr> filled_;  // by batch, until taken; null: no error
  bool stopping_ = false;
  LoaderWork worked_;
  std::vector<std::jthread> threads_;  // last: the threads use the other members
};

}  // namespace stratagem::training
