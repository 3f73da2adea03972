// Predicting the step of replicas: their passes from calibrated costs, their buckets on a link.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bench/config/placement.h"
#include "bench/predict/link_fit.h"
#include "bench/predict/predict.h"
#include "strategies/schedules/overlap_model.h"

namespace stratagem::bench {
namespace {

using schedules::ActionKind;

std::vector<schedules::PlannedTransfer> transfers_of(const StageCosts& costs) {
  const MeasuredLink link(costs.links.all_reduce);
  std::vector<schedules::PlannedTransfer> transfers;
  for (const GradientBucket& bucket : costs.buckets) {
    const schedules::Cost cost = link.transfer(bucket.bytes);
    transfers.push_back({.ready = bucket.ready,
                         .milliseconds = cost.alone_ms,
                         .processor_share = cost.processor_share});
  }
  return transfers;
}

/// Costs of the largest share of the batch: the slowest replica sets the pace.
class ReplicaCosts {
 public:
  explicit ReplicaCosts(const std::vector<ActionCost>& costs) : costs_(costs) {}

  double of(ActionKind kind, bool first = false) const {
    const ActionCost* best = nullptr;
    const auto rank = [&](const ActionCost& cost) {
      return std::pair(cost.first == first, cost.samples);
    };
    for (const ActionCost& cost : costs_) {
      if (cost.kind != schedules::name(kind)) continue;
      if (best == nullptr || rank(cost) > rank(*best)) best = &cost;
    }
    if (best != nullptr) return best->ms;
    throw std::invalid_argument(fmt::format("no calibrated cost for {}", schedules::name(kind)));
  }

 private:
  const std::vector<ActionCost>& costs_;
};

/// The actions of one replica, one after another.
class ReplicaLine {
 public:
  explicit ReplicaLine(int device) : device_(device) {}

  void add(ActionKind kind, int pass, double milliseconds) {
    put(kind, pass, {now_, now_ + milliseconds});
    now_ += milliseconds;
  }

  /// The last backward pass and what goes on beside it.
  void add(ActionKind kind, int pass, const schedules::OverlappedPass& overlapped) {
    for (std::size_t bucket = 0; bucket < overlapped.transfers.size(); ++bucket) {
      const schedules::Interval& transfer = overlapped.transfers[bucket];
      put(ActionKind::all_reduce, static_cast<int>(bucket),
          {now_ + transfer.start_ms, now_ + transfer.end_ms});
    }
    add(kind, pass, overlapped.compute_end_ms);
  }

  double now() const { return now_; }
  const std::vector<schedules::TimelineEntry>& entries() const { return entries_; }

 private:
  void put(ActionKind kind, int micro_batch, const schedules::Interval& interval) {
    entries_.push_back({.device = device_,
                        .action = {kind, 0, micro_batch},
                        .start_ms = interval.start_ms,
                        .end_ms = interval.end_ms});
  }

  int device_;
  double now_ = 0;
  std::vector<schedules::TimelineEntry> entries_;
};

}  // namespace

schedules::Timeline predict_replicas(const Config& config, const StageCosts& calibration) {
  const ReplicaCosts costs(calibration.costs);
  const strategies::StepPlan plan = plan_of(config, parts_of(calibration));
  const std::vector<schedules::Action>& actions = plan.schedule.actions.front();
  const auto makes_gradients = [](const schedules::Action& action) {
    return schedules::makes_weight_gradients(action.kind);
  };
  const auto first = *std::ranges::find_if(actions, makes_gradients);
  const auto last = *std::find_if(actions.rbegin(), actions.rend(), makes_gradients);
  const auto overlapped =
      schedules::overlap(costs.of(last.kind, last == first), transfers_of(calibration));
  schedules::Timeline timeline;
  for (int device = 0; device < placement_of(config).replicas(); ++device) {
    ReplicaLine line(device);
    for (const schedules::Action& action : actions) {
      const auto [kind, stage, pass] = action;
      if (action == last) {
        line.add(kind, pass, overlapped);
      } else if (kind == ActionKind::gradient_wait) {
        line.add(kind, pass, std::max(overlapped.end_ms() - overlapped.compute_end_ms, 0.0));
      } else if (schedules::is_collective(kind)) {
        line.add(kind, pass, 0);  // of a few bytes
      } else {
        line.add(kind, pass, costs.of(kind, action == first));
      }
    }
    timeline.entries.insert(timeline.entries.end(), line.entries().begin(), line.entries().end());
    timeline.step_ms = line.now();
  }
  return timeline;
}

std::vector<LinkTime> link_of_ring(std::vector<LinkTime> link_of_two, int ranks) {
  const schedules::LinkModel two = MeasuredLink(link_of_two).line();
  const double neighbours = ranks - 1;
  for (LinkTime& measured : link_of_two) {
    const double on_the_way = two.transfer_ms(static_cast<double>(measured.bytes)) - two.latency_ms;
    measured.ms = neighbours * two.latency_ms + 2 * neighbours / ranks * on_the_way;
  }
  return link_of_two;
}

}  // namespace stratagem::bench
