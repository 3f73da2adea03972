// Predicts the step of replicas in one process: their own schedule with calibrated costs.
#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <tuple>

#include "bench/config/placement.h"
#include "bench/predict/predict.h"
#include "strategies/schedules/simulate.h"

namespace stratagem::bench {
namespace {

using schedules::Action;
using schedules::ActionKind;
using schedules::Cost;

Cost times(const Cost& cost, double factor) {
  return {factor * cost.alone_ms, factor * cost.busy_ms};
}

Cost sum_of(const Cost& a, const Cost& b) {
  return {a.alone_ms + b.alone_ms, a.busy_ms + b.busy_ms};
}

/// Prices actions by calibrated segment and samples, all others in proportion.
class Prices {
 public:
  Prices(const Config& config, const StageCosts& calibration)
      : config_(config),
        request_(plan_request(config, parts_of(calibration))),
        plan_(strategies::plan_of(request_, outline_of(config))),
        shape_(strategies::data_parallel_shape(request_)) {
    if (calibration.owners.empty()) throw std::invalid_argument("no calibrated segments");
    for (const ActionCost& cost : calibration.costs) {
      const double alone_ms = cost.alone_ms < 0 ? cost.ms : cost.alone_ms;
      table_[{cost.kind, cost.stage, cost.samples}] = Cost(alone_ms, cost.ms);
    }
  }

  const schedules::Schedule& schedule() const { return plan_.schedule; }

  Cost of(const Action& action) const {
    const int segment = action.stage % shape_.segments();
    const int replica = action.stage / shape_.segments();
    if (!shape_.loss_on_replicas && action.stage == shape_.loss_stage())
      return of_loss(action.kind);
    switch (action.kind) {
      case ActionKind::copy_input:
      case ActionKind::scatter:
        return of_inputs(action.kind, replica);
      case ActionKind::scatter_gradient:
        return replica == shape_.output_device
                   ? Cost()
                   : find(ActionKind::copy_gradient, segment, samples_of(replica));
      case ActionKind::forward:
      case ActionKind::recompute:
      case ActionKind::backward:
        return find(action.kind, segment, samples_of(replica));
      case ActionKind::sum_gradients:
        return times(find(action.kind, segment, 0), shape_.replicas - (replica < shape_.replicas));
      case ActionKind::replicate:
        // An owner gets only buffers, which are few.
        return owner_of(segment) == replica ? Cost() : find(action.kind, segment, 0);
      default:
        return find(action.kind, segment, 0);
    }
  }

 private:
  int owner_of(int segment) const { return shape_.owners.at(static_cast<std::size_t>(segment)); }
  std::int64_t samples_of(int replica) const {
    return plan_.partition.at(static_cast<std::size_t>(replica)).count;
  }

  Cost find(ActionKind kind, int stage, std::int64_t samples) const {
    const auto found = table_.find({std::string(schedules::name(kind)), stage, samples});
    if (found != table_.end()) return found->second;
    throw std::invalid_argument(fmt::format("no calibrated cost for {} of stage {} with {} samples",
                                            schedules::name(kind), stage, samples));
  }

  /// Prices inputs: the first device may get the whole batch. Targets go to the last segment.
  Cost of_inputs(ActionKind kind, int replica) const {
    const int last = shape_.segments() - 1;
    const std::int64_t samples = samples_of(replica);
    Cost cost = find(ActionKind::copy_input, 0, samples);
    if (shape_.loss_on_replicas && last > 0) {
      cost = sum_of(cost, find(ActionKind::copy_input, last, samples));
    }
    const bool whole = replica == 0 && kind == ActionKind::copy_input && shape_.scatter_from_first;
    if (!whole) return cost;
    return times(cost,
                 static_cast<double>(config_.global_batch_size) / static_cast<double>(samples));
  }

  /// Prices the loss, whose stage follows the segments and whose samples are the batch.
  Cost of_loss(ActionKind kind) const {
    const std::int64_t batch = config_.global_batch_size;
    if (kind != ActionKind::gather) return find(kind, shape_.segments(), batch);
    // The others' outputs come, and all are joined: either is a copy.
    const bool has_own = shape_.output_device < shape_.replicas;
    const double own = has_own ? static_cast<double>(samples_of(shape_.output_device)) : 0;
    return times(find(ActionKind::copy_activation, shape_.segments(), batch),
                 2 - own / static_cast<double>(batch));
  }

  const Config& config_;
  strategies::PlanRequest request_;
  strategies::StepPlan plan_;
  schedules::DataParallelShape shape_;
  std::map<std::tuple<std::string, int, std::int64_t>, Cost> table_;
};

}  // namespace

bool is_data_parallel(const Config& config) { return outline_of(config).in_one_process; }

schedules::Timeline predict_data_parallel(const Config& config, const StageCosts& calibration) {
  const Prices prices(config, calibration);
  return schedules::simulate(prices.schedule(),
                             [&](const Action& action) { return prices.of(action); },
                             {.separate_copy_stream = config.device == "cuda"});
}

}  // namespace stratagem::bench
