// Strategy: how a workload is trained on a group of devices. Six methods, and every one means the
// same for each strategy, so that one harness measures and verifies them all.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/workload.h"
#include "strategies/pipeline/executor.h"
#include "strategies/runtime/device.h"

namespace stratagem::runtime {
class ProcessGroup;
}

namespace stratagem::strategies {

/// The options that strategies read; which of them each one does is in its registry entry.
struct StrategyOptions {
  std::int64_t split_size = 0;          // samples in a micro-batch
  std::int64_t accumulation_steps = 1;  // micro-batches of a replica before gradients are exchanged
  double bucket_mebibytes = 25;         // of gradients in one all-reduce
  bool overlap = true;                  // all-reduce beside the backward pass, not after it
  std::string compression = "none";     // of gradients on their way: none, fp16
  std::string schedule = {};            // see pipeline/schedule_registry.h
  int virtual_stages = 1;               // stages a device, of an interleaved schedule
  bool async_reduce = true;             // layers' input gradients travel beside the weights'
  std::vector<std::string> cut = {};    // names of the layers that begin stages 1, 2, ...
  bool inputs_on_device = false;        // keep the batch on the device after the first step
};

/// One rank's way to the others, where a job is spread over several. All groups outlive the
/// strategy.
struct RankGroups {
  runtime::ProcessGroup* all = nullptr;           // every rank of the job
  int replica = 0;                                // which of
  int replicas = 1;                               // so many this rank belongs to
  std::vector<runtime::ProcessGroup*> data = {};  // [own device]: the ranks with replicas of its
                                                  // stage; empty without replicas
  // The ranks of this rank's replica in the order of their stages; null where it has all stages.
  // Each direction has a group of its own: within one, sends and receives keep their order.
  runtime::ProcessGroup* activations = nullptr;
  runtime::ProcessGroup* gradients = nullptr;
  runtime::ProcessGroup* tensor = nullptr;  // the ranks that share this rank's layers
};

/// What a strategy is made from. The references outlive the strategy.
struct StrategyContext {
  const models::Workload& workload;
  runtime::DeviceSpan devices;
  StrategyOptions options = {};
  RankGroups groups = {};
  std::chrono::milliseconds timeout{120'000};
  /// Called on the device's thread before each action; empty but in tests of faults.
  std::function<void(const pipeline::Action&)> before_action = {};
};

/// Consecutive samples [start, start + count) of the global batch, normalised together.
struct Slice {
  std::int64_t start = 0;
  std::int64_t count = 0;
  int replica = 0;  // whose running statistics see them

  bool operator==(const Slice&) const = default;
};

/// Parameters, buffers, "optimizer.<...>" and "gradient.<parameter>" entries, on the CPU, under the
/// names of the single-device model.
using StateDictionary = std::map<std::string, at::Tensor>;

/// A step that was enqueued. Its figures are valid once the devices are synchronised.
class PendingStep {
 public:
  virtual ~PendingStep() = default;
  virtual const pipeline::Execution& execution() const = 0;
  /// The loss of the global batch.
  virtual double loss() const = 0;
};

struct CollectiveCost {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;
};

/// What a step costs by formula.
struct Costs {
  std::map<std::string, CollectiveCost> collectives;  // by name, a rank and step
  double flops = 0;                                   // of the whole job
  double ideal_bubble = 0;                            // fraction of the step
  int stages = 1;
  int live_micro_batches = 1;  // at most, on this rank's devices
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Enqueues one training step on the global batch, in host memory, and returns at once.
  virtual std::unique_ptr<PendingStep> step(const models::Batch& batch) = 0;

  /// The loss in evaluation mode, without an update. Synchronises.
  virtual double evaluate(const models::Batch& batch) = 0;

  /// Synchronises. Gradients are those of the last step.
  virtual StateDictionary state() = 0;

  /// Takes parameters, buffers and optimizer state; gradient entries are ignored.
  /// Throws std::invalid_argument for a missing entry or another shape.
  virtual void load(const StateDictionary& state) = 0;

  /// Which samples are normalised together, in the order in which running statistics see them; of
  /// all replicas. The buffers in state() are those of `replica`.
  virtual std::vector<Slice> batch_partition() const = 0;
  virtual int replica() const { return 0; }

  virtual Costs costs() const = 0;
};

}  // namespace stratagem::strategies
