// The task that times collectives, between two ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "bench/worker/tasks.h"
#include "tests/bench/worker/small_rows.h"
#include "tests/strategies/rank_threads.h"

namespace stratagem::bench::worker_collectives_test {
namespace {

// Every batch was exchanged while the task ran. A call of "send" is a message there and one back.
TEST(CollectivesTask, MessagesTakeNoLongerThanTheTask) {
  MessageTimes found;
  const auto start = std::chrono::steady_clock::now();
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    Config row = small_row("ddp");
    row.cut.clear();
    const CollectivesJob job{.config = row, .collective = "send", .bytes = {16 << 20}};
    const CollectivesResult result = collectives(job, {.ranks = &ranks});
    if (ranks.info().rank == 0) found = result.messages.at(0);
  });
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const double message_ms = std::accumulate(found.ms.begin(), found.ms.end(), 0.0);
  EXPECT_GT(message_ms, 0);
  EXPECT_LE(2 * message_ms, took.count());
}

}  // namespace
}  // namespace stratagem::bench::worker_collectives_test
