// verify: proves that a row's strategy computes the update that one device would, in float64 and in
// its own arithmetic, and finds the loss that its first timed step must have.
// reference: the steps of one device that a row's own steps are held against, in float64 and in the
// row's arithmetic.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "bench/config/batches.h"
#include "bench/config/verification_scope.h"
#include "bench/machine/machine.h"
#include "bench/oracle/layer_units.h"
#include "bench/oracle/oracle.h"
#include "bench/oracle/rounding.h"
#include "bench/oracle/trajectory.h"
#include "bench/worker/fault_injection.h"
#include "bench/worker/own_arithmetic.h"
#include "bench/worker/session.h"
#include "bench/worker/timed_run.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/runtime/cpu_device.h"

namespace stratagem::bench {
namespace {

/// One more step, which must communicate, and hold of the model's state, what the strategy's costs
/// say.
void compare_costs(const Session& session, reports::Verdict& verdict) {
  session.reset_counts();
  for (const auto& device : session.group.devices) device->reset_peak_memory();
  const auto pending = session.strategy->step(session.workload->make_batch(0));
  synchronize(session);
  std::string difference =
      distributed::difference_from_costs(session.counts(), costs_of_a_step(session));
  if (difference.empty()) difference = wrong_memory(session);
  if (difference.empty() || !verdict.passed) return;
  verdict.passed = false;
  verdict.message = difference;
}

/// In float64 whatever the row's own format is.
reports::Verdict verify_strategy(const Config& row, const TaskContext& context) {
  const VerificationScope scope = shrink(row, micro_batch_sizes(row), scope_traits(row));
  models::WorkloadOptions options = workload_options(scope.config);
  options.width = scope.width;
  const int rank = context.ranks ? context.ranks->info().rank : 0;
  std::optional<Session> made;
  const AllRanks all_ranks = [&made] { return made->groups.view().all; };
  made.emplace(scope.config, options, context,
               injected_fault(FaultyTask::verify, row.strategy, rank, all_ranks));
  const Session& session = *made;
  const bool exact = row.compression == "none";
  auto own = compare_with_oracle(*session.strategy, *session.workload,
                                 exact ? exact_tolerance : compressed_tolerance);
  compare_costs(session, own);
  reports::Verdict result = worst_of_ranks(context, own);
  result.scope = scope.text;
  return result;
}

/// Of two verdicts that are both to pass.
reports::Verification verification_of(const Config& row, const TaskContext& context) {
  const std::vector<int> cores = available_cores();
  reports::Verification verification{verify_strategy(row, context), {}};
  runtime::pin_this_thread(cores);  // its groups have pinned it to a device of theirs
  if (!verification.passed) return verification;
  const reports::Verdict own = verify_own_arithmetic(row, context);
  verification.own_arithmetic = own;
  verification.passed = own.passed;
  if (!own.passed)
    verification.message = fmt::format("in {}, {}", compute_format(row), own.message);
  return verification;
}

/// The format of the rounded trajectory. The CPU has no kernels for all that a GPU computes in
/// fewer bits.
at::ScalarType format_of(const Config& row, const models::WorkloadOptions& options) {
  if (row.device == "cuda" && options.dtype != at::kDouble) return at::kFloat;
  return lower_of(options.dtype);
}

/// The unit roundoff of what the row computes in.
double roundoff_of(const Config& row, at::ScalarType dtype) {
  const double roundoff = unit_roundoff(dtype);
  return row.device == "cuda" && row.tf32 ? std::max(roundoff, tf32_roundoff) : roundoff;
}

/// How many times as large the row's roundings are as those of a trajectory in `format`. Where
/// gradients are compressed, that is the larger rounding by far, and both have it.
double coarser_than(at::ScalarType format, const Config& row, double roundoff) {
  return row.compression == "none" ? roundoff / unit_roundoff(format) : 1;
}

models::Workload workload_in(const Config& row, at::ScalarType format) {
  models::WorkloadOptions options = workload_options(row);
  options.dtype = format;
  return models::Workload(options);
}

/// Few units that are rectified lie within one rounding of zero, and whether one does is chance.
/// Within so many roundings it is not.
constexpr double many_roundings = 64;

/// As long as it lives ATen computes on all cores that the process may use.
class ThreadOnEachCore {
 public:
  ThreadOnEachCore() { at::set_num_threads(static_cast<int>(available_cores().size())); }
  ~ThreadOnEachCore() { at::set_num_threads(before_); }
  ThreadOnEachCore(const ThreadOnEachCore&) = delete;
  ThreadOnEachCore& operator=(const ThreadOnEachCore&) = delete;

 private:
  int before_ = at::get_num_threads();
};

/// What of a step's gradients rectified units near zero may decide.
double undecided_of(const models::Workload& workload, double roundoff, std::int64_t steps) {
  const std::int64_t batch = workload.options().batch;
  const models::Model model = workload.make_meta_model();
  const auto terms = static_cast<double>(summed_terms(models::parameters(model.layers)) + batch);
  const double rounding = roundoff * std::sqrt(terms) * static_cast<double>(steps);
  return undecided_share(model.layers, workload.input_shape(batch), rounding);
}

}  // namespace

VerifyResult verify(const VerifyJob& job, const TaskContext& context) {
  VerifyResult result{.verification = verification_of(job.config, context), .first_loss = {}};
  if (context.ranks != nullptr && context.ranks->info().rank != 0) return result;
  models::WorkloadOptions options = workload_options(job.config);
  // CPUs are slow in half precision, and the float32 loss is the better reference.
  const bool mixed = options.mixed && at::isReducedFloatingType(options.dtype);
  if (options.dtype == at::kHalf || mixed) options.dtype = at::kFloat;
  const models::Workload workload(options);
  result.first_loss = {
      .value = forward_loss(workload, workload.make_batch(0), slices_of(job.config)),
      .tolerance = first_loss_tolerance(job.config)};
  return result;
}

ReferenceResult reference(const ReferenceJob& job, const TaskContext& /*context*/) {
  if (job.lengths.empty()) throw std::invalid_argument("a reference of no steps");
  const ThreadOnEachCore threads;
  const Config& row = job.config;
  const models::WorkloadOptions options = workload_options(row);
  const at::ScalarType format = format_of(row, options);
  const double roundoff = roundoff_of(row, options.dtype);
  const std::int64_t steps = job.lengths.back();
  const std::int64_t batches = std::min(different_batches(row), steps);
  TrajectoryRequest request{
      .lengths = job.lengths,
      .skipped = job.skipped,
      .exchanged_in = {},
      .batch_of = [&row](std::int64_t step) { return batch_of_step(row, step); }};
  ReferenceResult result;
  Reference& found = result.reference;
  found.undecided = undecided_of(models::Workload(options), roundoff, steps);
  found.exact = trajectory_of(workload_in(row, at::kDouble), slices_of(row), request);
  if (row.compression != "none") request.exchanged_in = at::kHalf;
  found.rounded = trajectory_of(workload_in(row, format), slices_of(row), request);
  if (format == at::kFloat && found.undecided > 0) {
    request.shaken = many_roundings * unit_roundoff(format);
    found.shaken = trajectory_of(workload_in(row, format), slices_of(row), request);
  }
  found.coarser = coarser_than(format, row, roundoff);
  found.roundoff = unit_roundoff(models::Workload(options).master_dtype());
  found.loss_tolerance = first_loss_tolerance(row);
  found.oracle =
      fmt::format("one device in float64, {} batch{}", batches, batches == 1 ? "" : "es");
  return result;
}

}  // namespace stratagem::bench
