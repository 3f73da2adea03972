// StoreWithDeadline limits the time of every call of a store.
//
// c10d's store waits for its server without a limit: if rank 0 were stopped, its host gone, or its
// port held by another, silent program, the other ranks would hang in the middle of a call and
// ignore signals. A call beyond the limit ends the process, in one line, and so its worker.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "strategies/ranks/key_value_store.h"

namespace stratagem::bench {

class StoreWithDeadline final : public ranks::KeyValueStore {
 public:
  using Opener = std::function<std::unique_ptr<ranks::KeyValueStore>()>;

  /// Opens the store. Calls `give_up`, on a thread of its own, when that or a call is overdue.
  StoreWithDeadline(const Opener& open, std::chrono::duration<double> limit,
                    std::function<void()> give_up);

  void set(const std::string& key, const std::string& text) override;
  std::optional<std::string> find(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 private:
  using Clock = std::chrono::steady_clock;
  class Call;

  void watch(const std::stop_token& stop);

  std::unique_ptr<ranks::KeyValueStore> store_;
  std::chrono::duration<double> limit_;
  std::function<void()> give_up_;
  std::mutex mutex_;
  std::list<Clock::time_point> calls_;  // begin of each call in flight
  std::jthread watcher_;                // ends first
};

}  // namespace stratagem::bench
