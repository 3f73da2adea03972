// What a row's parts cost, as calibration measures them and predictions use them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
/// that takes as long as the pass itself. The first backward stores gradients where later ones add
/// to them. Of a group of layers, whatever is the first of its kind.
struct ActionCost {
  std::string kind;
  int stage = 0;
  std::int64_t samples = 0;
  bool first = false;
  double ms = 0;                // mean, while the other devices are busy
  double alone_ms = -1;         // while they are idle; negative: as while they are busy
  Spread spread = {};           // of what `ms` is the mean of
  std::int64_t kept_bytes = 0;  // of a group of layers: so much more memory is held behind it,
  std::int64_t most_bytes = 0;  // and at most while it runs

  STRATAGEM_FIELDS(kind, stage, samples, first, ms, alone_ms, spread, kept_bytes, most_bytes)
};

/// Layers of a stage whose parameters are gathered, and whose gradients are scattered or summed,
/// together.
struct LayerGroup {
  std::int64_t stage = 0;
  std::int64_t gathered_bytes = 0;   // of its parameters, all ranks' parts; 0: it has none
  std::int64_t scattered_bytes = 0;  // of its gradients; 0: nothing is sharded
  std::int64_t summed_bytes = 0;     // over those that keep the same part; 0 where there are none

  STRATAGEM_FIELDS(stage, gathered_bytes, scattered_bytes, summed_bytes)
};

/// A collective between the row's ranks, by the bytes of all of them.
struct LinkTime {
  std::int64_t bytes = 0;
  double ms = 0;
  double processor_share = 0;  // of a core, while it lasts
  Spread spread = {};
};

/// What travels between replicas.
struct Links {
  std::vector<LinkTime> gather = {};      // of a group's parameters
  std::vector<LinkTime> scatter = {};     // of its gradients
  std::vector<LinkTime> all_reduce = {};  // of those that several replicas keep
};

/// Costs of a row. Links are empty without replicas on ranks of their own. Replicas in one process
/// have segments for stages, and the loss of the gathered outputs behind them; `owners` says which
/// device updates a segment. Where layers have groups, these stand for stages.
struct StageCosts {
  std::vector<ActionCost> costs = {};
  Links links = {};
  std::vector<std::int64_t> owners = {};         // [segment]
  std::vector<LayerGroup> groups = {};           // [group]
  bool has_buffers = false;                      // that replicas keep alike
  std::vector<std::int64_t> resting_bytes = {};  // [device of a replica]: held between steps
};

/// The costs where each takes the lower, or each the upper, quartile of its times.
StageCosts at_quartile(StageCosts costs, double Spread::*quartile);

}  // namespace stratagem::bench
