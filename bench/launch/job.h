// Jobs: the requests of a controller to its workers, and the result of each kind of job.
//
// Each is a plain struct that lists its fields once (reports/fields.h), by which it becomes JSON
// and is read back (job.cpp). A missing, unknown or wrongly typed field is reported in one line
// with the job and the field. bench/worker/tasks.h lists the function of each job.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bench/config/config.h"
#include "bench/predict/stage_costs.h"
#include "bench/proof/evidence.h"
#include "reports/record.h"
#include "strategies/ranks/launcher_environment.h"
#include "training/options.h"

namespace stratagem::bench {

/// The meeting point of a job's ranks, and which of them this one is.
struct RendezvousPoint {
  ranks::RankInfo info = {};
  std::string address = "127.0.0.1";
  int port = 0;
  std::optional<int> listening_fd = {};  // rank 0's bound socket, on which the store listens

  template <class Self, class Visit>
  static void each_field(Self& self, Visit visit) {
    visit("rank", self.info.rank);
    visit("world_size", self.info.world_size);
    visit("local_rank", self.info.local_rank);
    visit("local_world_size", self.info.local_world_size);
    visit("address", self.address);
    visit("port", self.port);
    visit("listening_fd", self.listening_fd);
  }
};

/// The fields that every job has.
struct JobHeader {
  int ranks = 1;         // processes that do it together
  double timeout = 120;  // seconds that they wait for one another, in stores and collectives
  std::optional<RendezvousPoint> rendezvous = {};  // filled in for each of several ranks

  STRATAGEM_FIELDS(ranks, timeout, rendezvous)
};

/// A job that needs only its row.
template <class ResultOfJob>
struct JobAboutRow {
  static constexpr const char* name = ResultOfJob::job;
  using Result = ResultOfJob;

  JobHeader header = JobHeader();
  Config config = {};

  STRATAGEM_FIELDS(header, config)
};

/// A checked row: its error, or its completed configuration.
struct CheckedRow {
  std::string error = {};  // empty: the row can work
  Config config = {};      // with the cut filled in
  int stages = 1;
  std::string note = {};  // a note on the row's devices; may be empty

  STRATAGEM_FIELDS(error, config, stages, note)
};

struct CheckResult {
  std::vector<CheckedRow> rows = {};

  STRATAGEM_FIELDS(rows)
};

struct CheckJob {
  static constexpr const char* name = "check";
  using Result = CheckResult;

  JobHeader header = JobHeader();
  std::vector<Config> configs = {};
  bool ranks_are_here = true;  // all ranks of a row are on this host; else a launcher started them

  STRATAGEM_FIELDS(header, configs, ranks_are_here)
};

/// The loss that a row's first timed step must have.
struct FirstLoss {
  double value = 0;
  double tolerance = 0;  // relative

  STRATAGEM_FIELDS(value, tolerance)
};

struct VerifyResult {
  static constexpr const char* job = "verify";

  reports::Verification verification = {};
  FirstLoss first_loss = {};

  STRATAGEM_FIELDS(verification, first_loss)
};

using VerifyJob = JobAboutRow<VerifyResult>;

/// The rates of each device; the link is between the first and the last.
struct CalibrateDeviceResult {
  static constexpr const char* job = "calibrate_device";

  double gemm_gflops = 0;
  double convolution_gflops = 0;
  double memory_gb_per_s = 0;
  double link_gb_per_s = 0;
  double link_latency_ms = 0;
  double peak_spread =
      0;  // median over the fastest time, less 1, of the calls that may give the peak

  STRATAGEM_FIELDS(gemm_gflops, convolution_gflops, memory_gb_per_s, link_gb_per_s, link_latency_ms,
                   peak_spread)
};

using CalibrateDeviceJob = JobAboutRow<CalibrateDeviceResult>;

struct CanaryResult {
  STRATAGEM_FIELDS()
};

/// A job with only what precedes and follows every timed job.
struct CanaryJob {
  static constexpr const char* name = "canary";
  using Result = CanaryResult;

  JobHeader header = JobHeader();
  Config config = {};

  STRATAGEM_FIELDS(header, config)
};

struct CalibrateStagesResult {
  static constexpr const char* job = "calibrate_stages";

  std::vector<ActionCost> costs = {};
  std::vector<std::int64_t> owners = {};       // for a row with replicas in one process
  std::vector<LayerGroup> groups = {};         // for a row whose layers have groups
  std::vector<std::int64_t> kept_groups = {};  // see StageCosts
  bool has_buffers = false;                    // whether its model has buffers
  StepMemory memory = {};

  STRATAGEM_FIELDS(costs, owners, groups, kept_groups, has_buffers, memory)
};

using CalibrateStagesJob = JobAboutRow<CalibrateStagesResult>;

struct MeasureResult {
  std::vector<reports::Repetition> repetitions = {};  // one; under the tutorial's protocol all
  std::vector<Evidence> evidence = {};                // [repetition]; empty if not asked for
  std::vector<reports::TimelineEvent> trace = {};     // events of all steps, if asked for

  STRATAGEM_FIELDS(repetitions, evidence, trace)
};

struct MeasureJob {
  static constexpr const char* name = "measure";
  using Result = MeasureResult;

  JobHeader header = JobHeader();
  Config config = {};
  std::optional<FirstLoss> first_loss = {};  // loss of a verified row
  std::optional<double> peak_gflops = {};    // peak of each device, for its utilisation
  std::string turns = {};                    // socket of the process that gives turns; empty: none
  bool evidence = false;
  bool memory = false;  // whether one more step shows what the devices hold
  bool trace = false;

  STRATAGEM_FIELDS(header, config, first_loss, peak_gflops, turns, evidence, memory, trace)
};

struct ReferenceResult {
  Reference reference = {};

  STRATAGEM_FIELDS(reference)
};

/// Asks for the steps of one device with which a row's launches are compared.
struct ReferenceJob {
  static constexpr const char* name = "reference";
  using Result = ReferenceResult;

  JobHeader header = JobHeader();
  Config config = {};
  std::vector<std::int64_t> lengths = {};  // steps of the launches, ascending
  std::vector<std::int64_t> skipped = {};  // see Evidence::skipped
  std::int64_t shakings = 0;               // the least Reference::shakings, if that may be above 0

  STRATAGEM_FIELDS(header, config, lengths, skipped, shakings)
};

/// The times of a collective at one message size.
struct MessageTimes {
  std::int64_t bytes = 0;
  std::int64_t wire_bytes = 0;  // bytes that the first rank sends for a call
  std::vector<double> ms = {};  // time of a call, batch by batch
  double processor_share = 0;   // share of a core during the calls

  STRATAGEM_FIELDS(bytes, wire_bytes, ms, processor_share)
};

struct CollectivesResult {
  std::vector<MessageTimes> messages = {};

  STRATAGEM_FIELDS(messages)
};

struct CollectivesJob {
  static constexpr const char* name = "collectives";
  using Result = CollectivesResult;

  JobHeader header = JobHeader();
  Config config = {};
  std::string collective = "all_reduce";
  std::vector<std::int64_t> bytes = {};

  STRATAGEM_FIELDS(header, config, collective, bytes)
};

struct TrainResult {
  std::int64_t steps = 0;
  std::int64_t skipped_updates = 0;  // among `steps`; see PendingStep::skipped()
  double seconds = 0;                // time of the steps, without evaluations
  double data_wait_ms = 0;           // time in which devices waited for a batch
  std::int64_t stalled_steps = 0;    // steps that waited for more than a hundredth of their time
  double loader_ms = 0;              // time of a batch on a loader thread
  double loader_processor_ms = 0;    // processor time of a batch
  std::int64_t loader_threads = 0;   // 0: batches were made between steps
  std::int64_t steps_before = 0;     // steps of the checkpoint that it continued from
  double seconds_before = 0;         // seconds of that checkpoint
  std::optional<double> loss = {};   // loss of the last step; none: not a number
  std::optional<double> validation_loss = {};  // last loss; none: no evaluation, or not a number
  std::optional<double> accuracy = {};
  std::optional<double> best = {};  // loss or accuracy of the best evaluation
  std::int64_t best_step = -1;      // step of that evaluation
  std::string set_aside = {};       // folder of another training's checkpoints
  bool stopped_early = false;       // evaluations no longer improved
  std::string stopped = {};         // error that ended it before its last step
  bool interrupted = false;
  std::string unwritten_log = {};  // lines missing from the log

  STRATAGEM_FIELDS(steps, skipped_updates, seconds, data_wait_ms, stalled_steps, loader_ms,
                   loader_processor_ms, loader_threads, steps_before, seconds_before, loss,
                   validation_loss, accuracy, best, best_step, set_aside, stopped_early, stopped,
                   interrupted, unwritten_log)
};

struct TrainJob {
  static constexpr const char* name = "train";
  using Result = TrainResult;

  JobHeader header = JobHeader();
  Config config = {};
  training::TrainingOptions training = {};
  std::string work =
      {};  // JSON: what must match when it continues; see bench/config/training_data.h

  STRATAGEM_FIELDS(header, config, training, work)
};

using Job = std::variant<CheckJob, VerifyJob, CanaryJob, CalibrateDeviceJob, CalibrateStagesJob,
                         MeasureJob, ReferenceJob, CollectivesJob, TrainJob>;
using JobResult = std::variant<CheckResult, VerifyResult, CanaryResult, CalibrateDeviceResult,
                               CalibrateStagesResult, MeasureResult, ReferenceResult,
                               CollectivesResult, TrainResult>;

JobHeader& header_of(Job& job);
const JobHeader& header_of(const Job& job);

nlohmann::json to_json(const Job& job);
nlohmann::json to_json(const JobResult& result);

/// Throws std::invalid_argument: "measure job: config.steps: expected a whole number, found ...".
Job job_from_json(const nlohmann::json& value);
/// Reads its result. Throws std::invalid_argument: "measure result: trace: is missing".
template <class Kind>
typename Kind::Result result_from_json(const nlohmann::json& value);

}  // namespace stratagem::bench
