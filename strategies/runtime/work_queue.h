// WorkQueue: a thread that runs what is pushed to it, in order, and says what it is doing.
//
// The part that CPU and CUDA devices share. On a CPU device the thread computes; on a CUDA device
// it launches kernels. It knows how long its current item has been running, so that a synchronise
// can tell a long queue from a hang.
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
    std::string name;                  // shown in errors: "cpu:0"
    std::function<void()> on_start;    // runs first, on the thread: pinning, thread counts
    ProgressPage* activity = nullptr;  // where the current label is shown; may be null
    int progress_slot = 0;
  };

  WorkQueue(std::shared_ptr<Monitor> monitor, Options options);
  /// Lets the current item finish, drops the rest, which is a failure of the group. An item that
  /// never ends is left behind with its thread detached: the process is about to end with an error.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// After a failure of the group, `work` is skipped. An empty label is not shown anywhere.
  void push(std::string label, std::function<void()> work);

  /// An item that only waits for another device: it is not the one to blame for an overrun.
  void enqueue_wait(std::string label, std::function<void()> work);

  /// Blocks until everything pushed so far has run; throws as Device::synchronize does.
  void drain(std::chrono::milliseconds limit);

  /// Blocks until `ready` holds, which an item that has been pushed brings about; throws likewise.
  void wait_for(const std::function<bool()>& ready, std::chrono::milliseconds limit);

  Monitor& monitor() { return *shared_->monitor; }
  const std::string& name() const { return shared_->options.name; }

 private:
  struct WorkItem {
    std::string label;
    std::function<void()> work;
    bool waits = false;
  };
  /// Held by the thread too, so that a detached thread never looks at a dead object.
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
