// RankContext: this process among the ranks of a job, and its connection to the others.
//
// The ranks meet at a store (c10d's TCPStore). Through it they exchange short texts, and process
// groups find their members. A job of one rank has neither.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "strategies/distributed/process_group.h"
#include "strategies/ranks/launcher_environment.h"

namespace stratagem::distributed {

struct Rendezvous {
  ranks::RankInfo info;
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  bool serve = false;               // this process runs the store
  std::optional<int> listening_fd;  // a bound socket for the store, against races for its port
  std::string prefix;               // separates runs that share a store
  std::chrono::milliseconds timeout{120'000};
};

class RankContext {
 public:
  /// Connects to the store. Throws CommunicationError, in one line, if it is not reached in time.
  explicit RankContext(const Rendezvous& rendezvous);

  const ranks::RankInfo& info() const { return info_; }

  /// Returns every rank's text, by rank. Collective: all ranks call it in the same order.
  std::vector<std::string> all_gather(const std::string& text);

  /// Returns when every rank has called it: the rank that runs the store must leave last.
  void leave();

  /// Makes a group of `ranks`, which must include this one; collective among them. `backend` is
  /// gloo or nccl. See ProcessGroup for the rest.
  std::unique_ptr<ProcessGroup> make_group(const std::string& name, std::vector<int> ranks,
                                           Backend backend, runtime::Device& device,
                                           const BackendOptions& options);

 private:
  ranks::RankInfo info_;
  std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  bool serves_ = false;
  std::int64_t exchanges_ = 0;
  std::int64_t groups_ = 0;
};

}  // namespace stratagem::distributed
