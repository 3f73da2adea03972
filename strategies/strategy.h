// Strategy: how a workload is trained on a group of devices. Ten methods, and every one means
// the same for each strategy, so that one harness measures and verifies them all.
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

/// One rank's way to the others, where a job is spread over several. All groups outlive the
/// strategy.
struct RankGroups {
  distributed::ProcessGroup* all = nullptr;           // every rank of the job
  int replica = 0;                                    // which of
  int replicas = 1;                                   // so many this rank belongs to
  std::vector<distributed::ProcessGroup*> data = {};  // [own device]: the ranks with replicas of
                                                      // its stage; empty without replicas
  // Where state is sharded over a part of them only, [own device]: the ranks of that part, and
  // those that keep the same shard in the others. Empty: it is sharded over all, or not at all.
  std::vector<distributed::ProcessGroup*> shards = {};
  std::vector<distributed::ProcessGroup*> copies = {};
  // The ranks of this rank's replica in the order of their stages; null where it has all stages.
  // Each direction has a group of its own: within one, sends and receives keep their order.
  distributed::ProcessGroup* activations = nullptr;
  distributed::ProcessGroup* gradients = nullptr;
  // The same ranks, for what goes to an earlier one's next stage and back: between two ranks it
  // would otherwise meet what goes the other way. Null where no earlier rank has a next stage.
  distributed::ProcessGroup* activations_around = nullptr;
  distributed::ProcessGroup* gradients_around = nullptr;
  distributed::ProcessGroup* tensor = nullptr;  // the ranks that share this rank's layers
  // The ranks that have parts of the gradients, for their norm: those of this rank's replica, of
  // the replicas over which gradients are sharded where they are. Null where that is one rank, or
  // nothing is clipped.
  distributed::ProcessGroup* norm = nullptr;
};

/// What a strategy is made from. The references outlive the strategy.
struct StrategyContext {
  const models::Workload& workload;
  runtime::DeviceSpan devices;
  StrategyOptions options = {};
  RankGroups groups = {};
  std::chrono::milliseconds timeout{120'000};
  /// Called on the device's thread before each action; empty but in tests of faults.
  std::function<void(const schedules::Action&)> before_action = {};
};

/// A step that was enqueued. Its figures are valid once the devices are synchronised.
class PendingStep {
 public:
  virtual ~PendingStep() = default;
  virtual const schedules::Execution& execution() const = 0;
  /// The loss of the global batch. Collective.
  virtual double loss() const = 0;
  /// This rank's part of it: their sum over the ranks is loss(). To be overridden by a strategy
  /// that spreads over ranks.
  virtual double own_loss() const { return loss(); }
  /// The global 2-norm of its gradients before they were clipped; 0 where none are.
  virtual double gradient_norm() const { return 0; }
  /// Whether no parameter was updated, because scaled gradients were not finite.
  virtual bool skipped() const { return false; }
};

/// What an evaluation says of a batch.
struct Evaluation {
  double loss = 0;  // the mean
  std::int64_t correct =
      0;  // positions whose class was predicted; 0 where targets are real numbers

  bool operator==(const Evaluation&) const = default;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Enqueues one training step on a global batch of any size, in host memory, and returns at once;
  /// the first step on a batch of another size, or where inputs stay on the device on another
  /// batch, waits for those before it. Throws as Batch::checked_size().
  virtual std::unique_ptr<PendingStep> step(const models::Batch& batch) = 0;

  /// Of the steps that are enqueued from now on; until then it is the workload's.
  virtual void set_learning_rate(double rate) = 0;

  /// In evaluation mode, without an update. Synchronises. Throws likewise.
  virtual Evaluation evaluate(const models::Batch& batch) = 0;

  /// Synchronises. Gradients are those of the last step.
  virtual StateDictionary state() = 0;

  /// This rank's pieces of what load() takes, and of the gradients of the last step. Each element
  /// of the whole state is in one piece of one rank, buffers in those of the first replica. The
  /// values are the strategy's own memory, valid until the next step. Synchronises; no rank waits
  /// for another.
  virtual StatePieces own_state(bool with_gradients) = 0;

  /// Takes parameters, buffers and optimizer state; gradient entries are ignored.
  /// Throws std::invalid_argument for a missing entry or another shape.
  virtual void load(const StateDictionary& state) = 0;

  /// Which samples of a batch of `samples` are normalised together, in the order in which running
  /// statistics see them; of all replicas. The buffers in state() are those of `replica`.
  virtual std::vector<schedules::Slice> batch_partition(std::int64_t samples) const = 0;
  virtual int replica() const { return 0; }

  /// What moved between this process's devices, by name, since it was last asked. What moves
  /// between ranks is counted by their groups.
  virtual CommunicationCounts take_counts() { return {}; }

  /// Of a step on a batch of `samples`.
  virtual Costs costs(std::int64_t samples) const = 0;
};

}  // namespace stratagem::strategies
