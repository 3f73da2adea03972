// train: a row's strategy over the epochs of a data set.
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/config/training_data.h"
#include "bench/worker/fault_injection.h"
#include "bench/worker/session.h"
#include "bench/worker/tasks.h"
#include "bench/worker/timed_run.h"
#include "models/token_data.h"
#include "training/log.h"
#include "training/loop/trainer.h"

namespace stratagem::bench {

TrainResult train(const TrainJob& job, const TaskContext& context) {
  const Config& config = job.config;
  const datasets::Datasets data = training_data(config, job.training, models::training_text());
  const int rank = context.ranks ? context.ranks->info().rank : 0;
  std::optional<Session> session;
  const AllRanks all_ranks = [&session] { return session->groups.view().all; };
  session.emplace(config, workload_options(config), context,
                  injected_fault(FaultyTask::measure, config.strategy, rank, all_ranks));
  training::LogWriter log(session->rank() == 0 ? job.training.log : std::string());
  const bool one_process = strategies::find_strategy(config.strategy).one_process;
  const training::Outcome outcome = training::train(
      {.workload = *session->workload,
       .strategy = *session->strategy,
       .synchronize = [&session] { synchronize(*session); },
       .replicas = one_process ? 1 : session->placement.replicas(),
       .pinned = config.device == "cuda",
       .timeout = to_milliseconds(config.timeout)},
      data, job.training, [&log](const nlohmann::ordered_json& line) { log.write(line); });
  return {.steps = outcome.steps,
          .seconds = outcome.seconds,
          .data_wait_ms = outcome.data_wait_ms,
          .loss = outcome.loss,
          .validation_loss = outcome.validation_loss,
          .accuracy = outcome.accuracy,
          .stopped = outcome.stopped};
}

}  // namespace stratagem::bench
