// A backend that behaves as NCCL does, on CPUs: Gloo behind queues.
//
// Every call returns at once and runs later, in the order of the calls: the collectives of a group
// on one queue, and what two ranks send one another, in either direction, on one queue of theirs.
// Messages have no tags: the n-th send to a rank meets that rank's n-th receive. Tensors are not
// looked at before the call runs. So what relies on tags, on copies made in time, or on a send that
// overtakes a receive, waits for ever here as it would there, and ends at Gloo's time limit.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "strategies/distributed/process_group.h"

namespace stratagem::distributed {

/// Runs what it is given on a thread of its own, one after another.
class CallQueue {
 public:
  CallQueue() : thread_([this](const std::stop_token& stop) { run(stop); }) {}
  ~CallQueue() {
    const std::lock_guard lock(mutex_);
    thread_.request_stop();
    changed_.notify_all();
  }
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  std::shared_future<void> push(std::function<void()> call) {
    std::packaged_task<void()> task(std::move(call));
    std::shared_future<void> ended = task.get_future().share();
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return ended;
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !tasks_.empty() || stop.stop_requested(); });
      if (tasks_.empty()) return;
      std::packaged_task<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  std::jthread thread_;  // last: it uses the rest
};

class QueuedWork : public c10d::Work {
 public:
  QueuedWork(int rank, std::shared_future<void> ended)
      : c10d::Work(rank, c10d::OpType::UNKNOWN), ended_(std::move(ended)) {}

  bool wait(std::chrono::milliseconds /*timeout*/) override {
    ended_.get();
    return true;
  }

 private:
  std::shared_future<void> ended_;
};

class InOrderBackend : public c10d::Backend {
 public:
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  explicit InOrderBackend(c10::intrusive_ptr<c10d::Backend> gloo)
      : c10d::Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)) {
    for (int rank = 0; rank < getSize(); ++rank) pairs_[rank];
  }

  const std::string getBackendName() const override { return "in_order"; }

  WorkPointer send(Tensors& tensors, int to, int /*tag*/) override {
    return later(pairs_.at(to),
                 [this, tensors, to]() mutable { return gloo_->send(tensors, to, 0); });
  }
  WorkPointer recv(Tensors& tensors, int from, int /*tag*/) override {
    return later(pairs_.at(from),
                 [this, tensors, from]() mutable { return gloo_->recv(tensors, from, 0); });
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return later(collectives_,
                 [this, tensors, options]() mutable { return gloo_->broadcast(tensors, options); });
  }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return later(collectives_,
                 [this, tensors, options]() mutable { return gloo_->allreduce(tensors, options); });
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    return later(collectives_, [this, output, input, options]() mutable {
      return gloo_->_allgather_base(output, input, options);
    });
  }
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    return later(collectives_, [this, outputs, inputs, options]() mutable {
      return gloo_->allgather(outputs, inputs, options);
    });
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    return later(collectives_, [this, output, input, options]() mutable {
      return gloo_->_reduce_scatter_base(output, input, options);
    });
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& to,
                            std::vector<int64_t>& from,
                            const c10d::AllToAllOptions& options) override {
    return later(collectives_, [this, output, input, to, from, options]() mutable {
      return gloo_->alltoall_base(output, input, to, from, options);
    });
  }
  WorkPointer barrier(const c10d::BarrierOptions& options) override {
    return later(collectives_, [this, options] { return gloo_->barrier(options); });
  }

 private:
  template <class Call>
  WorkPointer later(CallQueue& queue, Call call) {
    return c10::make_intrusive<QueuedWork>(
        getRank(), queue.push([call = std::move(call)]() mutable { call()->wait(); }));
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::map<int, CallQueue> pairs_;  // by the other rank
  CallQueue collectives_;
};

/// The same ranks as `gloo`, whose calls it uses.
inline std::unique_ptr<ProcessGroup> in_order(const ProcessGroup& gloo, const std::string& name,
                                              runtime::Device& device) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(gloo.rank(), gloo.size());
  const auto backend =
      c10::make_intrusive<InOrderBackend>(gloo.c10d()->getBackend(c10::DeviceType::CPU));
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  return std::make_unique<ProcessGroup>(name, gloo.ranks(), gloo.backend(), device,
                                        std::move(group));
}

}  // namespace stratagem::distributed
