// verify: proves that a row's strategy computes the update that one device would, in float64 and in
// its own arithmetic, and finds the loss that its first timed step must have.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <optional>

#include "bench/config/verification_scope.h"
#include "bench/machine/machine.h"
#include "bench/oracle/oracle.h"
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

}  // namespace stratagem::bench
