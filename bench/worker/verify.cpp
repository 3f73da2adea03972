// verify: proves that a row's strategy computes the update that one device would, and finds the
// loss that its first timed step must have.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "bench/config/verification_scope.h"
#include "bench/worker/fault_injection.h"
#include "bench/worker/oracle.h"
#include "bench/worker/session.h"
#include "bench/worker/timed_run.h"
#include "reports/json_fields.h"
#include "reports/record_fields.h"
#include "strategies/distributed/counted_costs.h"

namespace stratagem::bench {
namespace {

/// Every rank has compared its own state; the largest error counts.
reports::Verification worst_of(const std::vector<nlohmann::json>& by_rank) {
  reports::Verification worst;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto found =
        reports::json_fields::read_as<reports::Verification>(by_rank[rank], "verification");
    const bool worse = found.passed == worst.passed
                           ? found.max_relative_error > worst.max_relative_error
                           : !found.passed;
    if (rank > 0 && !worse) continue;
    worst = std::move(found);
    if (by_rank.size() > 1 && !worst.passed) {
      worst.message = fmt::format("rank {}: {}", rank, worst.message);
    }
  }
  if (by_rank.size() > 1) worst.oracle += fmt::format(", {} ranks", by_rank.size());
  return worst;
}

/// One more step, which must communicate what the strategy's costs say.
void compare_communication(const Session& session, reports::Verification& verification) {
  session.reset_counts();
  const auto pending = session.strategy->step(session.workload->make_batch(0));
  synchronize(session);
  const std::string difference =
      distributed::difference_from_costs(session.counts(), costs_of_a_step(session));
  if (difference.empty() || !verification.passed) return;
  verification.passed = false;
  verification.message = difference;
}

reports::Verification verification_of(const Config& row, const TaskContext& context) {
  const models::ModelEntry& entry = models::find_model(row.model);
  const VerificationScope scope =
      shrink(row, micro_batch_sizes(row),
             {.has_images = entry.input_kind == models::InputKind::image,
              .has_batch_norm = entry.has_batch_norm,
              .has_tokens = entry.input_kind == models::InputKind::tokens,
              .tensor_degree = placement_of(row).mesh.size("tensor")});
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
  compare_communication(session, own);
  reports::Verification result =
      worst_of(all_gather_json(context, reports::json_fields::json_of(own)));
  result.scope = scope.text;
  return result;
}

}  // namespace

VerifyResult verify(const VerifyJob& job, const TaskContext& context) {
  VerifyResult result{.verification = verification_of(job.config, context), .first_loss = {}};
  if (context.ranks != nullptr && context.ranks->info().rank != 0) return result;
  models::WorkloadOptions options = workload_options(job.config);
  // CPUs are slow in half precision, and the float32 loss is the better reference.
  if (options.dtype == at::kHalf) options.dtype = at::kFloat;
  const models::Workload workload(options);
  result.first_loss = {
      .value = forward_loss(workload, workload.make_batch(0), slices_of(job.config)),
      .tolerance = first_loss_tolerance(job.config)};
  return result;
}

}  // namespace stratagem::bench
