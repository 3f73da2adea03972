#include <nlohmann/json.hpp>

#include "bench/config/config.h"
#include "bench/machine/machine.h"
#include "bench/worker/canary.h"
#include "bench/worker/tasks.h"
#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/rank_context.h"

namespace stratagem::bench {
namespace {

/// Returns the place at which the controller lets the ranks meet.
distributed::Rendezvous rendezvous_of(const RendezvousPoint& point, double timeout) {
  return {.info = point.info,
          .address = point.address,
          .port = static_cast<std::uint16_t>(point.port),
          .serve = point.info.rank == 0,
          .listening_fd = point.listening_fd,
          .prefix = {},
          .timeout = to_milliseconds(timeout)};
}

/// Calls the task of each kind of job.
struct Tasks {
  const TaskContext& context;

  JobResult operator()(const CheckJob& job) const { return check(job, context); }
  JobResult operator()(const VerifyJob& job) const { return verify(job, context); }
  JobResult operator()(const CanaryJob&) const { return CanaryResult(); }
  JobResult operator()(const CalibrateDeviceJob& job) const {
    return calibrate_device(job, context);
  }
  JobResult operator()(const CalibrateStagesJob& job) const {
    return calibrate_stages(job, context);
  }
  JobResult operator()(const MeasureJob& job) const { return measure(job, context); }
  JobResult operator()(const ReferenceJob& job) const { return reference(job, context); }
  JobResult operator()(const CollectivesJob& job) const { return collectives(job, context); }
  JobResult operator()(const TrainJob& job) const { return train(job, context); }
};

/// Returns the row of a job that is timed without turns; null for any other.
struct TimedRow {
  const Config* operator()(const CheckJob&) const { return nullptr; }
  const Config* operator()(const VerifyJob&) const { return nullptr; }
  const Config* operator()(const ReferenceJob&) const { return nullptr; }
  const Config* operator()(const TrainJob&) const { return nullptr; }
  const Config* operator()(const MeasureJob& job) const {
    return job.turns.empty() ? &job.config : nullptr;
  }
  const Config* operator()(const auto& job) const { return &job.config; }
};

CalibrationEffort least_calibration() {
  using std::chrono::milliseconds;
  return {.rate = milliseconds(0),
          .message = milliseconds(0),
          .busy = milliseconds(0),
          .alone = milliseconds(0),
          .groups = milliseconds(0),
          .copied_bytes = std::int64_t{1} << 20};
}

JobResult perform(const Job& job, const TaskContext& context) {
  const Config* row = std::visit(TimedRow(), job);
  if (row == nullptr || context.conditions == nullptr || is_untimed()) {
    return std::visit(Tasks{context}, job);
  }
  const Canary canary(*row, context);
  context.conditions->canary_before_ms = canary.milliseconds();
  JobResult result = std::visit(Tasks{context}, job);
  context.conditions->canary_after_ms = canary.milliseconds();
  return result;
}

}  // namespace

nlohmann::json perform_task(const Job& job, const TaskContext& context) {
  backends::install_accounting_allocator();
  const JobHeader& header = header_of(job);
  TaskContext own = context;
  if (is_untimed()) own.calibration = least_calibration();
  if (!header.rendezvous) return to_json(perform(job, own));
  distributed::RankContext ranks(rendezvous_of(*header.rendezvous, header.timeout));
  own.ranks = &ranks;
  const JobResult result = perform(job, own);
  ranks.leave();
  return ranks.info().rank == 0 ? to_json(result) : nlohmann::json();
}

}  // namespace stratagem::bench
