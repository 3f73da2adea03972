#include "training/loader.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <utility>

namespace stratagem::training {
namespace {

std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Behind what trains on the same cores.
void lower_priority() {
  constexpr int politeness = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), politeness);
}

}  // namespace

Loader::Loader(std::size_t batches, const LoaderOptions& options, Fill fill)
    : batches_(batches), options_(options), fill_(std::move(fill)) {
  options_.prefetch = std::max<std::size_t>(options_.prefetch, 1);
  for (std::size_t thread = 0; thread < std::max<std::size_t>(options_.threads, 1); ++thread) {
    threads_.emplace_back([this] { work(); });
  }
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void Loader::work() {
  lower_priority();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || started_ == batches_ || may_start(); });
    if (stopping_ || started_ == batches_) return;
    const std::size_t batch = started_++;
    lock.unlock();
    std::exception_ptr error;
    const auto before = processor_time();
    try {
      fill_(batch, batch % slots());
    } catch (...) {
      error = std::current_exception();
    }
    const auto took = processor_time() - before;
    lock.lock();
    worked_ += took;
    filled_.emplace(batch, std::move(error));
    changed_.notify_all();
  }
}

std::size_t Loader::next() {
  const auto asked = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const std::size_t batch = taken_;
  if (batch == batches_) throw std::runtime_error("loader: there are no more batches");
  const bool came =
      changed_.wait_for(lock, options_.timeout, [&] { return filled_.contains(batch); });
  waited_ += std::chrono::steady_clock::now() - asked;
  if (!came) {
    throw std::runtime_error(fmt::format("loader: batch {} did not come within {} s", batch,
                                         options_.timeout.count() / 1000));
  }
  const std::exception_ptr error = filled_.extract(batch).mapped();
  ++taken_;
  lock.unlock();
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
  return batch % slots();
}

std::chrono::nanoseconds Loader::worked() const {
  const std::lock_guard lock(mutex_);
  return worked_;
}

}  // namespace stratagem::training
