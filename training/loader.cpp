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

/// Lets threads that train on the same cores run first.
void lower_priority() {
  constexpr int politeness = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), politeness);
}

}  // namespace

void add(LoaderWork& total, const LoaderWork& more) {
  total.threads = std::max(total.threads, more.threads);
  total.batches += more.batches;
  total.elapsed += more.elapsed;
  total.processor += more.processor;
}

Loader::Loader(std::size_t batches, const LoaderOptions& options, Fill fill)
    : batches_(batches), options_(options), fill_(std::move(fill)) {
  options_.prefetch = std::max<std::size_t>(options_.prefetch, 1);
  worked_.threads = options_.threads;
  for (std::size_t thread = 0; thread < options_.threads; ++thread) {
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
    LoaderWork took;
    std::exception_ptr error = filled(batch, took);
    lock.lock();
    add(worked_, took);
    filled_.emplace(batch, std::move(error));
    changed_.notify_all();
  }
}

/// Fills a batch and returns the exception that this threw.
std::exception_ptr Loader::filled(std::size_t batch, LoaderWork& work) const {
  const auto start = std::chrono::steady_clock::now();
  const auto before = processor_time();
  std::exception_ptr error;
  try {
    fill_(batch, batch % slots(options_));
  } catch (...) {
    error = std::current_exception();
  }
  work = {.batches = 1,
          .elapsed = std::chrono::steady_clock::now() - start,
          .processor = processor_time() - before};
  return error;
}

std::size_t Loader::next() {
  std::unique_lock lock(mutex_);
  const std::size_t batch = taken_;
  if (batch == batches_) throw std::runtime_error("loader: there are no more batches");
  if (options_.threads == 0) {
    LoaderWork took;
    filled_.emplace(batch, filled(batch, took));
    add(worked_, took);
  }
  const bool came =
      changed_.wait_for(lock, options_.timeout, [&] { return filled_.contains(batch); });
  if (!came) {
    throw std::runtime_error(fmt::format(
        "loader: batch {} was not ready within {} s; raise --timeout or --loader-threads", batch,
        options_.timeout.count() / 1000));
  }
  const std::exception_ptr error = filled_.extract(batch).mapped();
  ++taken_;
  lock.unlock();
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
  return batch % slots(options_);
}

LoaderWork Loader::worked() const {
  const std::lock_guard lock(mutex_);
  return worked_;
}

}  // namespace stratagem::training
