// WorkQueue: a thread that runs the pushed items in order and reports its current one.
//
// CPU and CUDA devices share this part. On a CPU device the thread computes; on a CUDA device it
// launches kernels. It records how long its current item has been running, so that a
// synchronisation can distinguish a long queue from a hang.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "strategies/runtime/monitor.h"
#include "strategies/runtime/progress_page.h"

namespace stratagem::runtime {

class WorkQueue {
 public:
  struct Options {
    std::string name;                  // the name in errors: "cpu:0"
    std::function<void()> on_start;    // runs first on the thread: pinning, thread counts
    ProgressPage* activity = nullptr;  // shows the current label; may be null
    int progress_slot = 0;
  };

  WorkQueue(std::shared_ptr<Monitor> monitor, Options options);
  /// Lets the current item finish and drops the rest, which is a failure of the group. An item that
  /// never ends stays behind in a detached thread: the process is about to end with an error.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Adds `work`, which a failure of the group skips. An empty label is not shown anywhere.
  void push(std::string label, std::function<void()> work);

  /// Adds an item that only waits for another device and is not the cause of an overrun.
  void enqueue_wait(std::string label, std::function<void()> work);

  /// Blocks until all items pushed so far have run; throws like Device::synchronize.
  void drain(std::chrono::milliseconds limit);

  /// Blocks until an item makes `ready` true; throws like Device::synchronize.
  void wait_for(const std::function<bool()>& ready, std::chrono::milliseconds limit);

  Monitor& monitor() { return *shared_->monitor; }
  const std::string& name() const { return shared_->options.name; }

 private:
  struct WorkItem {
    std::string label;
    std::function<void()> work;
    bool waits = false;
  };
  /// The thread shares this, so that it stays valid if the thread is detached.
  struct Shared {
    std::shared_ptr<Monitor> monitor;
    Options options;
    std::deque<WorkItem> items;
    std::size_t pushed = 0;
    std::size_t finished = 0;
    std::shared_ptr<Activity> activity;
    bool stopping = false;
    bool ended = false;
  };

  void push(WorkItem item);
  static void loop(const std::shared_ptr<Shared>& shared);
  static bool take(Shared& shared, WorkItem& item, bool has_run);
  static void run(Shared& shared, WorkItem& item);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace stratagem::runtime
