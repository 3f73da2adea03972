// What a launch of several ranks leaves in the results.
#include "bench/worker/record.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>

#include "reports/statistics.h"
#include "tests/bench/worker/small_rows.h"
#include "tests/strategies/rank_threads.h"

namespace stratagem::bench::record_test {
namespace {

/// What each of two ranks makes of two steps that it timed; `change` alters a rank's run before.
std::array<reports::Repetition, 2> records(
    const std::function<void(int rank, TimedRun& run)>& change = {}) {
  std::array<reports::Repetition, 2> found;
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    Config row = small_row("ddp");
    row.cut.clear();
    const TaskContext context{.ranks = &ranks};
    const Session session(row, workload_options(row), context);
    const auto batch = session.workload->make_batch(0);
    const auto run_of = [&](int count) {
      return timed(session, context, [&](PendingSteps& steps) {
        for (int step = 0; step < count; ++step) steps.push_back(session.strategy->step(batch));
      });
    };
    run_of(1);  // DDP's first step exchanges more
    TimedRun run = run_of(2);
    if (change) change(session.rank(), run);
    found[static_cast<std::size_t>(session.rank())] =
        record_of(session, context, run, /*peak_gflops=*/2.0, std::nullopt);
  });
  return found;
}

TEST(Record, UtilisationIsOverThePeakOfAllRanksDevices) {
  for (const reports::Repetition& launch : records()) {
    ASSERT_TRUE(launch.mfu.has_value());
    const double seconds = reports::median(launch.step_ms) / 1e3;
    EXPECT_NEAR(*launch.mfu, launch.flops_per_step / seconds / (2 * 2e9), 1e-9 * *launch.mfu);
  }
}

TEST(Record, ProcessorTimeIsThatOfAllRanks) {
  const auto found =
      records([](int rank, TimedRun& run) { run.processor_ms = rank == 0 ? 10 : 32; });
  for (const reports::Repetition& launch : found) EXPECT_EQ(launch.cpu_ms, 21) << "for each step";
}

}  // namespace
}  // namespace stratagem::bench::record_test
