// The costs of a row's parts, as calibration measures them and predictions use them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/predict/memory_watch.h"
#include "reports/fields.h"

namespace stratagem::bench {

/// The quartiles of times over their mean.
struct Spread {
  double low = 1;
  double high = 1;

  STRATAGEM_FIELDS(low, high)
};

/// Returns the mean of times, of which there is one at least, without those beyond Tukey's outer
/// fence, three interquartile ranges above the upper quartile. A step adds up its actions, so it
/// takes the sum of their means; the sum of their medians is shorter.
double mean_cost(const std::vector<double>& times);

/// Returns the quartiles of times over mean_cost().
Spread spread_of(const std::vector<double>& times);

/// Milliseconds of one kind of action of one stage. `first`: the stage's first pass of its kind in
/// a step. The first forward also prepares the updated parameters for its kernels; with ResNet-18
/// that takes as long as the pass itself. The first backward stores gradients, and later ones add
/// to them. In a group of layers, any action may be the first of its kind.
struct ActionCost {
  std::string kind;
  int stage = 0;
  std::int64_t samples = 0;
  bool first = false;
  double ms = 0;         // mean, while the other devices are busy
  double alone_ms = -1;  // while they are idle; negative: same as `ms`
  Spread spread = {};    // spread of the times behind `ms`

  STRATAGEM_FIELDS(kind, stage, samples, first, ms, alone_ms, spread)
};

/// How one kind of action changes what its device holds; the names are those of ActionCost.
struct ActionMemory {
  std::string kind;
  int stage = 0;
  std::int64_t samples = 0;
  bool first = false;
  BytesByPurpose kept = {};     // held after it minus held before it
  std::int64_t most_bytes = 0;  // the most that is held meanwhile, minus what was held before it

  STRATAGEM_FIELDS(kind, stage, samples, first, kept, most_bytes)
};

/// The memory of a row's actions. Empty if it was not measured.
struct StepMemory {
  std::vector<ActionMemory> actions = {};
  std::vector<BytesByPurpose> resting = {};  // [device of a replica]: held between steps

  STRATAGEM_FIELDS(actions, resting)
};

/// Layers of a stage whose parameters are gathered, and whose gradients are scattered or summed,
/// together.
struct LayerGroup {
  std::int64_t stage = 0;
  std::int64_t gathered_bytes = 0;   // all ranks' parts of its parameters; 0: it has none
  std::int64_t scattered_bytes = 0;  // bytes of its gradients; 0: nothing is sharded
  std::int64_t summed_bytes = 0;     // over ranks with the same part; 0: there are none

  STRATAGEM_FIELDS(stage, gathered_bytes, scattered_bytes, summed_bytes)
};

/// The time of a collective between the row's ranks, by the bytes of all of them.
struct LinkTime {
  std::int64_t bytes = 0;
  double ms = 0;
  double processor_share = 0;  // share of a core meanwhile
  Spread spread = {};
};

/// The collectives between replicas.
struct Links {
  std::vector<LinkTime> gather = {};      // for a group's parameters
  std::vector<LinkTime> scatter = {};     // for its gradients
  std::vector<LinkTime> all_reduce = {};  // for gradients that several replicas keep
};

/// The costs of a row. Links are empty without replicas on ranks of their own. Replicas in one
/// process have segments as stages, followed by the loss of the gathered outputs; `owners` are the
/// devices that update a segment. If layers have groups, these are the stages.
struct StageCosts {
  std::vector<ActionCost> costs = {};
  Links links = {};
  std::vector<std::int64_t> owners = {};       // [segment]
  std::vector<LayerGroup> groups = {};         // [group]
  bool has_buffers = false;                    // buffers that replicas keep equal
  std::vector<std::int64_t> kept_groups = {};  // see strategies::ModelParts
  StepMemory memory = {};
};

/// Returns the costs with each one's lower, or upper, quartile of its times.
StageCosts at_quartile(StageCosts costs, double Spread::*quartile);

}  // namespace stratagem::bench
