// What a row's parts cost, as calibration measures them and predictions use them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::bench {

/// Milliseconds of one kind of action of one stage. `first`: the stage's first backward of a step,
/// which stores gradients where later ones add to them.
struct ActionCost {
  std::string kind;
  int stage = 0;
  std::int64_t samples = 0;
  bool first = false;
  double ms = 0;         // while the other devices are busy
  double alone_ms = -1;  // while they are idle; negative: as while they are busy
  double spread_ms = 0;  // of what `ms` is the median of: the range of its middle half

  template <class Self, class Visit>
  static void each_field(Self& self, Visit visit) {
    visit("kind", self.kind);
    visit("stage", self.stage);
    visit("samples", self.samples);
    visit("first", self.first);
    visit("ms", self.ms);
    visit("alone_ms", self.alone_ms);
    visit("spread_ms", self.spread_ms);
  }
};

/// Gradients that a replica sends in one all-reduce.
struct GradientBucket {
  std::int64_t bytes = 0;  // as they are sent
  double ready = 1;        // when it is full, as a fraction of the backward pass

  template <class Self, class Visit>
  static void each_field(Self& self, Visit visit) {
    visit("bytes", self.bytes);
    visit("ready", self.ready);
  }
};

/// An all-reduce between the row's ranks.
struct LinkTime {
  std::int64_t bytes = 0;
  double ms = 0;
  double processor_share = 0;  // of a core, while it lasts
};

/// Of a row. Buckets, in the order in which they become full, and link are empty without replicas
/// on ranks of their own. Replicas in one process have segments for stages, and the loss of the
/// gathered outputs behind them; `owners` says which device updates a segment.
struct StageCosts {
  std::vector<ActionCost> costs = {};
  std::vector<GradientBucket> buckets = {};
  std::vector<LinkTime> link = {};
  std::vector<std::int64_t> owners = {};  // [segment]
};

}  // namespace stratagem::bench
