// What a worker process can be asked to do. A task takes one JSON document and returns one; the
// controller (bench/measure.h) decides which tasks run when, each in a process of its own.
//
//   check             the rows' options against models and devices; fills in the cut
//   verify            a strategy against its oracle in float64, and the first step's loss
//   calibrate_device  peak rates and link of the devices
//   calibrate_stages  what each action of a row costs, without running the row
//   measure           the timed steps
//   collectives       what a collective between the ranks takes
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "strategies/runtime/activity_board.h"

namespace stratagem::runtime {
class RankContext;
}

namespace stratagem::bench {

struct TaskContext {
  runtime::ActivityBoard* activity = nullptr;  // where devices say what they do; may be null
  runtime::RankContext* ranks = nullptr;       // the way to the job's other ranks; null without any
};

/// Throws std::invalid_argument for a job or configuration that cannot work, runtime::DeviceTimeout
/// when an action overran, runtime::CommunicationError when another rank failed this one, and other
/// exceptions for failures; all with one line of text. Of several ranks, each is given the job with
/// a member "rendezvous"; rank 0's result counts.
nlohmann::json perform_task(const nlohmann::json& job, const TaskContext& context);

nlohmann::json check_task(const nlohmann::json& job, const TaskContext& context);
nlohmann::json verify_task(const nlohmann::json& job, const TaskContext& context);
nlohmann::json calibrate_device_task(const nlohmann::json& job, const TaskContext& context);
nlohmann::json calibrate_stages_task(const nlohmann::json& job, const TaskContext& context);
nlohmann::json measure_task(const nlohmann::json& job, const TaskContext& context);
nlohmann::json collectives_task(const nlohmann::json& job, const TaskContext& context);

}  // namespace stratagem::bench
