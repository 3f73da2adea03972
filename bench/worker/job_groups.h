// JobGroups: the process groups of one rank of a row, which its placement decides.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "bench/config/placement.h"
#include "bench/worker/tasks.h"
#include "strategies/distributed/rank_context.h"
#include "strategies/runtime/device.h"
#include "strategies/strategy.h"

namespace stratagem::bench {

class JobGroups {
 public:
  /// Makes none without ranks in `context`. Collective among the job's ranks; each group's threads
  /// share the cores of the device that it serves.
  JobGroups(const Config& config, Placement placement, const TaskContext& context,
            runtime::DeviceSpan devices);

  strategies::RankGroups view() const;
  int rank() const { return all_ ? all_->rank() : 0; }
  int ranks() const { return all_ ? all_->size() : 1; }

  /// Returns when every rank has arrived.
  void barrier() const;
  /// Returns what all groups have moved since the last reset.
  distributed::CommunicationCounts counts() const;
  void reset_counts() const;
  /// Aborts all groups; see runtime::ProcessGroup::abort.
  void abort() const;

 private:
  using GroupPointer = std::unique_ptr<distributed::ProcessGroup>;
  std::vector<distributed::ProcessGroup*> groups() const;

  Placement placement_;
  GroupPointer all_;
  std::vector<GroupPointer> data_;    // [own device]
  std::vector<GroupPointer> shards_;  // [own device]
  std::vector<GroupPointer> copies_;  // [own device]
  GroupPointer activations_;
  GroupPointer gradients_;
  GroupPointer activations_around_;
  GroupPointer gradients_around_;
  GroupPointer tensor_;
  GroupPointer context_;
  GroupPointer norm_;
};

/// Aborts the groups when an exception ends the scope or destroys the object with this member: as
/// its last one, before the others wait for something that no longer comes.
class AbortOnException {
 public:
  explicit AbortOnException(const JobGroups& groups) : groups_(groups) {}
  ~AbortOnException();
  AbortOnException(const AbortOnException&) = delete;
  AbortOnException& operator=(const AbortOnException&) = delete;

 private:
  const JobGroups& groups_;
  int exceptions_at_start_ = std::uncaught_exceptions();
};

}  // namespace stratagem::bench
