// From when to when a stretch of steps is timed, with steps that say when they ended.
#include "bench/worker/timed_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/bench/worker/small_rows.h"
#include "tests/strategies/rank_threads.h"

namespace stratagem::bench::timed_run_test {
namespace {

using namespace std::chrono_literals;
using Clock = TimedRun::Clock;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Matcher;

class EventAt final : public runtime::Event {
 public:
  explicit EventAt(Clock::time_point time) : time_(time) {}
  bool complete() const override { return true; }
  Clock::time_point time() const override { return time_; }

 private:
  Clock::time_point time_;
};

/// A step of one action.
class StepUntil final : public strategies::PendingStep {
 public:
  explicit StepUntil(Clock::time_point end)
      : execution_{{.device = 0,
                    .action = {.kind = schedules::ActionKind::optimizer},
                    .start = std::make_shared<EventAt>(end - 1s),
                    .end = std::make_shared<EventAt>(end)}} {}
  const schedules::Execution& execution() const override { return execution_; }
  double loss() const override { return 0; }

 private:
  schedules::Execution execution_;
};

/// Calls `work` on each of two ranks of a row.
template <class Work>
void on_two_ranks(const Work& work) {
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    Config row = small_row("ddp");
    row.cut.clear();
    const TaskContext context{.ranks = &ranks};
    const Session session(row, workload_options(row), context);
    work(session, context);
  });
}

/// A number of hours, as far as the start is known.
Matcher<double> hours(double expected) {
  constexpr double ms_an_hour = 3.6e6;
  return DoubleNear(expected * ms_an_hour, 0.1 * ms_an_hour);
}

TEST(TimedRun, AStepEndsWithTheLatestRankAndNotWithTheLastOne) {
  const std::array<std::vector<std::chrono::hours>, 2> ends = {{{2h, 3h}, {1h, 5h}}};
  std::array<TimedRun, 2> runs;
  on_two_ranks([&](const Session& session, const TaskContext& context) {
    const auto rank = static_cast<std::size_t>(session.rank());
    runs[rank] = timed(session, context, [&](PendingSteps& steps) {
      const auto now = Clock::now();
      for (const auto end : ends[rank]) steps.push_back(std::make_unique<StepUntil>(now + end));
    });
  });
  for (const TimedRun& run : runs) {
    EXPECT_THAT(run.step_ms(), ElementsAre(hours(2), hours(3)));
    EXPECT_THAT(run.per_rank_ms,
                ElementsAre(ElementsAre(hours(2), hours(1)), ElementsAre(hours(1), hours(4))));
  }
}

TEST(TimedRun, StartsWhenTheLastRankHasCome) {
  std::atomic<bool> first_has_come = false;
  std::array<Clock::time_point, 2> came;
  std::array<Clock::time_point, 2> started;
  on_two_ranks([&](const Session& session, const TaskContext& context) {
    const auto rank = static_cast<std::size_t>(session.rank());
    if (rank == 0) {
      first_has_come = true;
    } else {
      while (!first_has_come) std::this_thread::yield();
      std::this_thread::sleep_for(200ms);  // the first one waits by then
    }
    came[rank] = Clock::now();
    started[rank] = timed(session, context, [](PendingSteps&) {}).start;
  });
  for (const auto start : started) {
    EXPECT_GE(start, came[0]);
    EXPECT_GE(start, came[1]);
  }
}

TEST(TimedRun, HasTheProcessorTimeOfItsStepsAlone) {
  while (processor_milliseconds() < 300) continue;  // more than what comes behind the steps
  const double before = processor_milliseconds();
  const Config row = small_row("single");
  const reports::Repetition launch = measured(row);
  const double spent = processor_milliseconds() - before;
  EXPECT_GT(launch.cpu_ms, 0);
  EXPECT_LE(launch.cpu_ms * static_cast<double>(row.steps), spent);
}

}  // namespace
}  // namespace stratagem::bench::timed_run_test
