// The tasks of a worker process, one for each kind of job (bench/launch/job.h). The controller
// (bench/measure/measure.h) decides which tasks run when, each in a process of its own.
//
//   check             the rows' options against models and devices; fills in the cut
//   verify            a strategy against its oracle in float64, its layers and a step of it in its
//                     own arithmetic, and the first step's loss
//   canary            a fixed product on each device, as before and after every task that is timed
//   calibrate_device  peak rates and link of the devices
//   calibrate_stages  the cost of each action of a row, without running its schedule
//   measure           the timed steps
//   reference         the steps of one device with which those are compared
//   collectives       the times of a collective between the ranks
//   train             epochs over a data set
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "bench/launch/job.h"
#include "strategies/runtime/monitor.h"
#include "strategies/runtime/progress_page.h"

namespace stratagem::distributed {
class RankContext;
}  // namespace stratagem::distributed

namespace stratagem::bench {

/// The duration and size of calibrations, and the clock that stage loops read. Each measures a few
/// times at least, even in a short time.
struct CalibrationEffort {
  std::chrono::milliseconds rate{400};     // each rate of a device
  std::chrono::milliseconds message{20};   // each batch of calls of a collective
  std::chrono::milliseconds busy{900};     // each stage beside the others
  std::chrono::milliseconds alone{350};    // each stage by itself
  std::chrono::milliseconds groups{3000};  // whole steps of a row whose layers have groups
  std::int64_t copied_bytes = std::int64_t{256} << 20;  // more than caches hold
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

struct TaskContext {
  runtime::ProgressPage* activity = nullptr;  // page for the devices' actions; may be null
  distributed::RankContext* ranks = nullptr;  // way to the job's other ranks; null without any
  reports::Conditions* conditions = nullptr;  // for the canary's times; null without one
  runtime::Monitor::OverrunHandler on_overrun = {};
  CalibrationEffort calibration = {};
};

/// Throws std::invalid_argument for a job or configuration that cannot work, runtime::DeviceTimeout
/// if an action overran, runtime::CommunicationError if another rank failed this one, and other
/// exceptions for failures; all with one line of text. Each of several ranks gets the job with its
/// own rendezvous; rank 0's result counts, and the others' is null.
nlohmann::json perform_task(const Job& job, const TaskContext& context);

CheckResult check(const CheckJob& job, const TaskContext& context);
VerifyResult verify(const VerifyJob& job, const TaskContext& context);
CalibrateDeviceResult calibrate_device(const CalibrateDeviceJob& job, const TaskContext& context);
CalibrateStagesResult calibrate_stages(const CalibrateStagesJob& job, const TaskContext& context);
MeasureResult measure(const MeasureJob& job, const TaskContext& context);
ReferenceResult reference(const ReferenceJob& job, const TaskContext& context);
CollectivesResult collectives(const CollectivesJob& job, const TaskContext& context);
TrainResult train(const TrainJob& job, const TaskContext& context);

}  // namespace stratagem::bench
