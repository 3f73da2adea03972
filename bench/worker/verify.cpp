// verify: proves that a row's strategy computes the update that one device would, in float64 and in
// its own arithmetic, and finds the loss that its first timed step must have.
// reference: takes the steps of one device with which a row's own steps are compared, in float64
// and in the row's number format.
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

/// Runs one more step, whose communication and memory of the model's state must equal the
/// strategy's costs.
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

/// Verifies in float64, regardless of the row's own format.
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

/// Combines two verdicts, both of which must pass.
reports::Verification verification_of(const Config& row, const TaskContext& context) {
  const std::vector<int> cores = available_cores();
  reports::Verification verification{verify_strategy(row, context), {}};
  runtime::pin_this_thread(cores);  // its groups have pinned it to one of their devices
  if (!verification.passed) return verification;
  const reports::Verdict own = verify_own_arithmetic(row, context);
  verification.own_arithmetic = own;
  verification.passed = own.passed;
  if (!own.passed)
    verification.message = fmt::format("in {}, {}", compute_format(row), own.message);
  return verification;
}

/// Returns the format of a GPU's reference. The CPU lacks kernels for some functions that a GPU
/// computes in fewer bits.
at::ScalarType float32_or_more(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

/// Returns the unit roundoff of the row's arithmetic.
double roundoff_of(const Config& row, at::ScalarType dtype) {
  const double roundoff = unit_roundoff(dtype);
  const bool in_tf32 = row.device == "cuda" && row.tf32 && dtype == at::kFloat;
  return in_tf32 ? std::max(roundoff, tf32_roundoff) : roundoff;
}

models::Workload workload_in(const Config& row, at::ScalarType format) {
  models::WorkloadOptions options = workload_options(row);
  options.dtype = format;
  return models::Workload(options);
}

/// Only chance decides whether a rectified unit lies within one rounding of zero. Some units lie
/// within this many roundings.
constexpr double many_roundings = 64;

/// Makes ATen compute on all cores that the process may use, while it lives.
class ThreadOnEachCore {
 public:
  ThreadOnEachCore() { at::set_num_threads(static_cast<int>(available_cores().size())); }
  ~ThreadOnEachCore() { at::set_num_threads(before_); }
  ThreadOnEachCore(const ThreadOnEachCore&) = delete;
  ThreadOnEachCore& operator=(const ThreadOnEachCore&) = delete;

 private:
  int before_ = at::get_num_threads();
};

/// Returns the share of a gradient that rectified units near zero may change in one of the steps.
double undecided_of(const models::Workload& workload, double roundoff, std::int64_t steps) {
  const std::int64_t batch = workload.options().batch;
  const models::Model model = workload.make_meta_model();
  const auto terms = static_cast<double>(summed_terms(models::parameters(model.layers)) + batch);
  const double rounding = roundoff * std::sqrt(terms) * static_cast<double>(steps);
  return undecided_share(model.layers, workload.input_shape(batch), rounding);
}

/// Returns the error of one flipped sign. Adam divides by the gradient's size: if the gradient lies
/// within a rounding of zero, chance decides the sign of an update as large as the learning rate
/// (Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization", section 2.1).
double sign_flip_of(const Config& row, at::ScalarType format) {
  const bool has_signs = row.optimizer == "adam" || row.optimizer == "adamw";
  return has_signs && format != at::kDouble ? 2 * row.learning_rate : 0;
}

/// Returns the slices over which a reference adds up gradients. A BatchNorm needs those of the row.
/// Without one the slices change nothing, and few samples at a time take little memory.
std::vector<schedules::Slice> reference_slices(const Config& row,
                                               const models::Workload& workload) {
  constexpr std::int64_t few_samples = 8;
  if (workload.entry().has_batch_norm) return slices_of(row);
  return schedules::split_batch(row.global_batch_size, few_samples);
}

bool amplifies(const Config& row) {
  return amplifies_roundings(row, micro_batch_sizes(row), scope_traits(row));
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
      .tolerance = first_loss_tolerance(job.config, amplifies(job.config))};
  return result;
}

ReferenceResult reference(const ReferenceJob& job, const TaskContext& /*context*/) {
  if (job.lengths.empty()) throw std::invalid_argument("a reference of no steps");
  const ThreadOnEachCore threads;
  const Config& row = job.config;
  const models::Workload workload(workload_options(row));
  const at::ScalarType dtype = workload.options().dtype;
  const at::ScalarType format = row.device == "cuda" ? float32_or_more(dtype) : dtype;
  const double roundoff = roundoff_of(row, dtype);
  const std::vector<schedules::Slice> slices = reference_slices(row, workload);
  const std::int64_t steps = job.lengths.back();
  TrajectoryRequest request{.lengths = job.lengths,
                            .skipped = job.skipped,
                            .batches = different_batches(row, elements_of(workload))};
  Reference found{.coarser = roundoff / unit_roundoff(format),
                  .roundoff = unit_roundoff(workload.master_dtype()),
                  .sign_flip = sign_flip_of(row, format),
                  .undecided = undecided_of(workload, roundoff, steps),
                  .shaken_factor = amplifies(row) ? 4.0 : 2.0,
                  .loss_tolerance = first_loss_tolerance(row, amplifies(row))};
  const std::int64_t batches = std::min(request.batches, steps);
  found.oracle =
      fmt::format("one device in float64, {} batch{}", batches, batches == 1 ? "" : "es");
  found.exact = trajectory_of(workload_in(row, at::kDouble), slices, request);
  if (row.compression != "none") request.exchanged_in = at::kHalf;
  const bool is_exact = format == at::kDouble;
  if (!is_exact) found.rounded = trajectory_of(workload_in(row, format), slices, request);
  found.magnifies = is_exact || (format == at::kFloat && found.undecided > 0);
  found.shakings = found.magnifies ? std::max<std::int64_t>(job.shakings, is_exact ? 1 : 0) : 0;
  request.shaken = many_roundings * unit_roundoff(format);
  for (request.draw = 0; request.draw < found.shakings; ++request.draw) {
    Trajectory shaken = trajectory_of(workload_in(row, format), slices, request);
    const bool is_first = request.draw == 0;
    found.shaken = is_first ? std::move(shaken) : furthest(found.shaken, shaken, found.exact);
  }
  return {.reference = std::move(found)};
}

}  // namespace stratagem::bench
