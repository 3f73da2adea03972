// What the threads of a test know of one another's work on streams: a vector clock for each stream.
//
// A stream counts its work items. Whoever waits for an event learns how far all streams had come
// that the event's own stream knew of. So it can be told whether one piece of work surely ran after
// another, whichever of them happened to be faster. (Mattern 1988, "Virtual Time and Global States
// of Distributed Systems"; torch.cuda._sanitizer does the same for CUDA streams.)
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>

namespace stratagem::runtime {

/// Held by a stream: nobody can ask for its items when it is gone.
using Lifetime = std::shared_ptr<const int>;

/// By stream: so many of its items are known to have run. Streams that are gone are forgotten, or
/// what threads of the host know would grow with every device of a process, and each step of one
/// copies it.
class StreamClock {
 public:
  void learn(const StreamClock& other) {
    std::erase_if(items_, [](const auto& entry) { return entry.second.stream.expired(); });
    for (const auto& [stream, known] : other.items_) {
      if (known.stream.expired()) continue;
      Known& own = items_.try_emplace(stream, known).first->second;
      own.items = std::max(own.items, known.items);
    }
  }
  std::uint64_t of(int stream) const {
    const auto found = items_.find(stream);
    return found == items_.end() ? 0 : found->second.items;
  }
  std::uint64_t count(int stream, const Lifetime& lifetime) {
    return ++items_.try_emplace(stream, Known{lifetime, 0}).first->second.items;
  }
  std::size_t streams() const { return items_.size(); }

 private:
  struct Known {
    std::weak_ptr<const int> stream;
    std::uint64_t items = 0;
  };
  std::map<int, Known> items_;
};

/// Numbers for devices and streams that differ in the whole process.
inline int unique_number() {
  static std::atomic<int> next{0};
  return next++;
}

/// One stream of one device, as its own thread and those that look at its memory see it.
class StreamState {
 public:
  /// `device` is the device's unique number; `name` is shown: "cpu:0 copy".
  StreamState(int device, std::string name, std::uint64_t seed)
      : device_(device), name_(std::move(name)), random_(seed) {}

  int number() const { return number_; }
  int device() const { return device_; }
  const std::string& name() const { return name_; }

  StreamClock clock() const {
    const std::lock_guard lock(mutex_);
    return clock_;
  }
  void learn(const StreamClock& other) {
    const std::lock_guard lock(mutex_);
    clock_.learn(other);
  }
  /// The number of the item that runs now, or ran last.
  std::uint64_t item() const {
    const std::lock_guard lock(mutex_);
    return clock_.of(number_);
  }
  bool has_ended(std::uint64_t item) const {
    const std::lock_guard lock(mutex_);
    return ended_ >= item;
  }
  void begin_item() {
    const std::lock_guard lock(mutex_);
    clock_.count(number_, lifetime_);
  }
  void end_item() {
    const std::lock_guard lock(mutex_);
    ended_ = clock_.of(number_);
  }
  /// Before the next item; asked by the stream's own thread alone.
  std::chrono::microseconds delay() {
    constexpr int longest = 200;
    return std::chrono::microseconds(std::uniform_int_distribution<int>(0, longest)(random_));
  }

 private:
  int number_ = unique_number();
  Lifetime lifetime_ = std::make_shared<const int>(number_);
  int device_;
  std::string name_;
  std::minstd_rand random_;
  mutable std::mutex mutex_;
  StreamClock clock_;
  std::uint64_t ended_ = 0;
};
using StreamPointer = std::shared_ptr<StreamState>;

/// What the calling thread is: at work for a stream, so that this and its device are the current
/// ones; one of the host's that has used a device; or one that nothing is known of.
struct ThreadState {
  StreamPointer stream;
  bool is_host = false;
  StreamClock known;  // by a thread of the host

  bool is_known() const { return stream != nullptr || is_host; }
  StreamClock clock() const { return stream != nullptr ? stream->clock() : known; }
};

inline ThreadState& this_thread_state() {
  static thread_local ThreadState state;
  return state;
}

/// The clock of a thread that uses a device.
inline StreamClock clock_of_user() {
  ThreadState& own = this_thread_state();
  if (own.stream == nullptr) own.is_host = true;
  return own.clock();
}

/// The calling thread has waited for what happened before `clock`.
inline void host_learns(const StreamClock& clock) {
  ThreadState& own = this_thread_state();
  if (own.stream != nullptr) return own.stream->learn(clock);
  own.is_host = true;
  own.known.learn(clock);
}

/// The calling thread works for a stream while this lives.
class CurrentStream {
 public:
  explicit CurrentStream(StreamPointer stream)
      : before_(std::exchange(this_thread_state().stream, std::move(stream))) {
    this_thread_state().stream->begin_item();
  }
  ~CurrentStream() {
    this_thread_state().stream->end_item();
    this_thread_state().stream = std::move(before_);
  }
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;

 private:
  StreamPointer before_;
};

}  // namespace stratagem::runtime
