// Strategy: a way to train a workload on a group of devices. Its ten methods mean the same for each
// strategy, so that one harness measures and verifies them all.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "models/workload.h"
#include "strategies/costs.h"
#include "strategies/options.h"
#include "strategies/runtime/device.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/executor.h"
#include "strategies/state.h"

namespace stratagem::distributed {
class ProcessGroup;
}  // namespace stratagem::distributed

namespace stratagem::strategies {

/// One rank's groups in a job that is spread over several ranks. All groups outlive the strategy.
struct RankGroups {
  distributed::ProcessGroup* all = nullptr;           // every rank of the job
  int replica = 0;                                    // the replica of this rank
  int replicas = 1;                                   // the number of replicas
  std::vector<distributed::ProcessGroup*> data = {};  // [own device]: the ranks with the same
                                                      // layers of its stage, which sum their
                                                      // gradients; empty if that is one rank
  // If state is sharded over some of them only, [own device]: the ranks that shard it, and those
  // that keep the same shard. Empty: it is sharded over all, or not at all.
  std::vector<distributed::ProcessGroup*> shards = {};
  std::vector<distributed::ProcessGroup*> copies = {};
  // The ranks of this rank's replica in the order of their stages; null if it has all stages. Each
  // direction has its own group: within one, sends and receives keep their order.
  distributed::ProcessGroup* activations = nullptr;
  distributed::ProcessGroup* gradients = nullptr;
  // The same ranks, for transfers to an earlier rank's next stage and back: between two ranks they
  // would otherwise meet the opposite ones. Null if no earlier rank has a next stage.
  distributed::ProcessGroup* activations_around = nullptr;
  distributed::ProcessGroup* gradients_around = nullptr;
  distributed::ProcessGroup* tensor = nullptr;   // the ranks that share this rank's layers
  distributed::ProcessGroup* context = nullptr;  // the ranks that share its samples' positions
  // The ranks that have parts of the gradients, for their norm: those of this rank's replica, or of
  // the replicas over which gradients are sharded. Null if that is one rank, or nothing is clipped.
  distributed::ProcessGroup* norm = nullptr;
};

/// The inputs of a strategy. The references must outlive it.
struct StrategyContext {
  const models::Workload& workload;
  runtime::DeviceSpan devices;
  StrategyOptions options = {};
  RankGroups groups = {};
  std::chrono::milliseconds timeout{120'000};
  /// Called on the device's thread before each action; empty except in tests of faults.
  std::function<void(const schedules::Action&)> before_action = {};
};

/// An enqueued step. Its numbers are valid once the devices are synchronised.
class PendingStep {
 public:
  virtual ~PendingStep() = default;
  virtual const schedules::Execution& execution() const = 0;
  /// Returns the loss of the global batch. Collective.
  virtual double loss() const = 0;
  /// Returns this rank's part of it: the parts sum to loss() over the ranks. A strategy that
  /// spreads over ranks must override it.
  virtual double own_loss() const { return loss(); }
  /// Returns the global 2-norm of its gradients before clipping; 0 without clipping.
  virtual double gradient_norm() const { return 0; }
  /// Returns whether no parameter was updated, because scaled gradients were not finite.
  virtual bool skipped() const { return false; }
};

/// The evaluation of a batch.
struct Evaluation {
  double loss = 0;  // the mean
  std::int64_t correct =
      0;  // positions whose class was predicted; 0 where targets are real numbers

  bool operator==(const Evaluation&) const = default;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Enqueues one training step on a global batch of any size, in host memory, and returns at once.
  /// The first step on a batch of another size, or on another batch if inputs stay on the device,
  /// waits for earlier steps. Throws like Batch::checked_size().
  virtual std::unique_ptr<PendingStep> step(const models::Batch& batch) = 0;

  /// Sets the rate of steps enqueued from now on; until then it is the workload's.
  virtual void set_learning_rate(double rate) = 0;

  /// Evaluates without an update and synchronises. Throws like Batch::checked_size().
  virtual Evaluation evaluate(const models::Batch& batch) = 0;

  /// Returns the state, with the gradients of the last step. Synchronises.
  virtual StateDictionary state() = 0;

  /// Returns this rank's pieces of load()'s state, and of the last step's gradients. Each element
  /// of the whole state is in one piece of one rank, buffers in those of the first replica. The
  /// values are the strategy's own memory, valid until the next step. Synchronises; no rank waits
  /// for another.
  virtual StatePieces own_state(bool with_gradients) = 0;

  /// Loads parameters, buffers and optimizer state; gradient entries are ignored. Throws
  /// std::invalid_argument for a missing entry or another shape.
  virtual void load(const StateDictionary& state) = 0;

  /// Returns the slices of a batch that are normalised together, of all replicas, in the order of
  /// the running statistics. The buffers in state() are those of `replica`.
  virtual std::vector<schedules::Slice> batch_partition(std::int64_t samples) const = 0;
  virtual int replica() const { return 0; }

  /// Returns transfers between this process's devices, by name, since the last call. The ranks'
  /// groups count transfers between ranks.
  virtual CommunicationCounts take_counts() { return {}; }

  /// Returns the costs of a step on a batch of `samples`.
  virtual Costs costs(std::int64_t samples) const = 0;
};

}  // namespace stratagem::strategies
