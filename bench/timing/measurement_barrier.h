// Lets several threads measure their work at the same time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

namespace stratagem::bench {

/// Loops that are measured together: none begins before all are warm, none rests before all are
/// done. A member that leaves, its work skipped or ended by an exception, delays no other; nor does
/// one that takes longer than the limit.
class MeasurementBarrier {
 public:
  MeasurementBarrier(std::size_t loops, std::chrono::milliseconds limit)
      : deadline_(std::chrono::steady_clock::now() + limit), warming_(loops), measuring_(loops) {}

  class Participant {
   public:
    explicit Participant(std::shared_ptr<MeasurementBarrier> all) : all_(std::move(all)) {}
    ~Participant() {
      warm();
      done();
    }
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

    void warm() { leave(warm_, all_->warming_); }
    void done() { leave(done_, all_->measuring_); }
    bool others_warm_up() const { return all_->waits_for(all_->warming_); }
    bool others_measure() const { return all_->waits_for(all_->measuring_); }

   private:
    static void leave(bool& left, std::atomic<std::size_t>& members) {
      if (!std::exchange(left, true)) --members;
    }

    std::shared_ptr<MeasurementBarrier> all_;
    bool warm_ = false;
    bool done_ = false;
  };

 private:
  bool waits_for(const std::atomic<std::size_t>& members) const {
    return members > 0 && std::chrono::steady_clock::now() < deadline_;
  }

  std::chrono::steady_clock::time_point deadline_;
  std::atomic<std::size_t> warming_;
  std::atomic<std::size_t> measuring_;
};

}  // namespace stratagem::bench
