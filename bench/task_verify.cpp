// verify: proves that a row's strategy computes the update that one device would, and finds the
// loss that its first timed step must have.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "bench/options.h"
#include "bench/task_fault.h"
#include "bench/task_oracle.h"
#include "bench/task_session.h"
#include "bench/task_timed_run.h"
#include "bench/verification_scope.h"
#include "reports/record_json.h"
#include "strategies/counted_costs.h"

namespace stratagem::bench {
namespace {

/// How far the first loss may be from that of one device: the rounding of the number format, over
/// sums in another order.
double loss_tolerance(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return 1e-9;
    case at::kFloat:
      return 1e-4;
    case at::kHalf:
      return 1e-2;
    default:
      return 5e-2;  // bfloat16
  }
}

/// Every rank has compared its own state; the largest error counts.
reports::Verification worst_of(const std::vector<nlohmann::json>& by_rank) {
  reports::Verification worst;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto found = reports::verification_from_json(by_rank[rank], "verification");
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
  session.groups.reset_counts();
  const auto pending = session.strategy->step(session.workload->make_batch(0));
  synchronize(session);
  const std::string difference =
      strategies::difference_from_costs(session.groups.counts(), session.strategy->costs());
  if (difference.empty() || !verification.passed) return;
  verification.passed = false;
  verification.message = difference;
}

reports::Verification verify(const Config& row, const TaskContext& context) {
  const models::ModelEntry& entry = models::find_model(row.model);
  const VerificationScope scope =
      shrink(row, micro_batch_sizes(row),
             {.has_images = entry.input_kind == models::InputKind::image,
              .has_batch_norm = entry.has_batch_norm,
              .has_tokens = entry.input_kind == models::InputKind::tokens,
              .tensor_degree = placement_of(row).mesh.size("tensor")});
  models::WorkloadOptions options = workload_options(scope.config);
  options.width = scope.width;
  const int rank = context.ranks ? context.ranks->place().rank : 0;
  std::optional<Session> made;
  const AllRanks all_ranks = [&made] { return made->groups.view().all; };
  made.emplace(scope.config, options, context,
               fault_on_purpose(FaultyTask::verify, row.strategy, rank, all_ranks));
  const Session& session = *made;
  const bool exact = row.compression == "none";
  auto own = compare_with_oracle(*session.strategy, *session.workload,
                                 exact ? exact_tolerance : compressed_tolerance);
  compare_communication(session, own);
  reports::Verification result = worst_of(tell_all_ranks(context, reports::to_json(own)));
  result.scope = scope.text;
  return result;
}

}  // namespace

nlohmann::json verify_task(const nlohmann::json& job, const TaskContext& context) {
  const Config row = config_from_json(job.at("config"));
  nlohmann::json result = reports::to_json(verify(row, context));
  if (context.ranks != nullptr && context.ranks->place().rank != 0) return result;
  const models::Workload workload(workload_options(row));
  result["reference_loss"] = forward_loss(workload, workload.make_batch(0), slices_of(row));
  result["loss_tolerance"] = loss_tolerance(workload.options().dtype);
  return result;
}

}  // namespace stratagem::bench
