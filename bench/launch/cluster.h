// Cluster: the controllers that a launcher (torchrun, mpirun, srun, or by hand) started, one for
// each rank.
//
// All read the same command line. Rank 0 decides what is launched when, like a single controller;
// the others wait at the store, run the worker of their rank for every job that spans all ranks,
// and leave when rank 0 ends the cluster. So a launch is a fresh process on every rank here too, a
// crashed worker ends no other row, and only rank 0 writes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/launch/launch.h"
#include "bench/launch/remote_rank.h"
#include "strategies/ranks/key_value_store.h"
#include "strategies/ranks/launcher_environment.h"

namespace stratagem::bench {

struct ClusterOptions {
  ranks::RankInfo info;
  std::string launcher;                      // "torchrun"
  std::string master_address = "127.0.0.1";  // address of rank 0's workers
  std::chrono::duration<double> timeout{120};
  const Interrupt* interrupt = nullptr;
  bool verbose = false;
  std::vector<std::string> worker_command = LaunchOptions{}.command;  // for ranks other than 0
};

class Cluster {
 public:
  /// Returns when every rank has arrived. Throws CommunicationError if one has not in time, and
  /// std::invalid_argument if two have the same rank or different world sizes.
  Cluster(std::unique_ptr<ranks::KeyValueStore> store, const ClusterOptions& options);
  /// On rank 0: makes the others leave, with exit code 4 unless lead() has set another.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const ranks::RankInfo& info() const { return options_.info; }

  /// On rank 0: runs a job on all ranks.
  LaunchResult launch(const Job& job, const LaunchOptions& options);
  /// On rank 0: returns what `body` returns. The others leave with that, or with the exit code of
  /// its exception (bench/launch/exit_codes.h).
  int lead(const std::function<int()>& body);

  /// On other ranks: does what rank 0 asks for until the end. Returns the exit code.
  int follow();

 private:
  void register_rank();
  void compare_with(int rank, const nlohmann::json& note) const;
  void settle_local_ranks(const std::vector<std::string>& hosts);
  void send_heartbeat(const std::stop_token& stop);
  void say(const std::string& activity, const std::string& stall_reason);
  int follow_the_first();
  void perform(int number, const nlohmann::json& note);
  /// Returns the failure of a rank that was lost in an earlier job and is still silent.
  std::optional<LaunchResult> known_loss();
  std::string who() const;

  ClusterOptions options_;
  std::unique_ptr<ranks::KeyValueStore> store_;
  int next_job_ = 0;
  int exit_code_;
  struct Lost {
    Heartbeat heartbeat;
    LaunchResult failure;
  };
  std::map<int, Lost> lost_;  // by rank
  std::mutex mutex_;
  std::string activity_;
  std::string stall_reason_;
  std::jthread heartbeat_;  // ends first
};

}  // namespace stratagem::bench
