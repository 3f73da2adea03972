// Cluster: the controllers that a launcher (torchrun, mpirun, srun, or by hand) started, one for
// each rank.
//
// All read the same command line. Rank 0 decides what is launched when, as a controller alone
// would; the others wait at the store, run the worker of their rank for every job that spans all
// ranks, and leave when rank 0 says so. So a launch is a fresh process on every rank here too, a
// crashed worker takes no other row with it, and only rank 0 writes.
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
  std::string master_address = "127.0.0.1";  // where rank 0's workers can be reached
  std::chrono::duration<double> timeout{120};
  const Interrupt* interrupt = nullptr;
  bool verbose = false;
  std::vector<std::string> worker_command = LaunchOptions{}.command;  // of a rank but the first
};

class Cluster {
 public:
  /// Returns when every rank has come. Throws CommunicationError when one has not in time, and
  /// std::invalid_argument when two say that they are the same rank, or mean different worlds.
  Cluster(std::unique_ptr<ranks::KeyValueStore> store, const ClusterOptions& options);
  /// Of rank 0: tells the others to leave, with exit code 4 unless lead() has found another.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const ranks::RankInfo& info() const { return options_.info; }

  /// Of rank 0: runs a job on all ranks.
  LaunchResult launch(const Job& job, const LaunchOptions& options);
  /// Of rank 0: returns what `body` returns; the others leave with that, or with what its exception
  /// means (bench/launch/exit_codes.h).
  int lead(const std::function<int()>& body);

  /// Of the others: does what rank 0 wants until it says that it is over. Returns the exit code.
  int follow();

 private:
  void register_rank();
  void compare_with(int rank, const nlohmann::json& note) const;
  void settle_local_ranks(const std::vector<std::string>& hosts);
  void send_heartbeat(const std::stop_token& stop);
  void say(const std::string& activity, const std::string& stall_reason);
  int follow_the_first();
  void perform(int number, const nlohmann::json& note);
  /// The failure of a rank that was lost in an earlier job and has not been heard of since.
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
