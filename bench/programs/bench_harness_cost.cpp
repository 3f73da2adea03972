// Measures the time that the harness adds to a step.
//
// Such a step is all harness: queues, events, stamps, waits between devices, and the breakdown of
// its times. Rows: a pipeline over some devices (1f1b) with some micro-batches. The time is that of
// one such step, from the first enqueue to its breakdown. Counters: actions in the step,
// microseconds an action. A training step's harness cost is this row's time over the step's time.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "bench/google_benchmark/library_main.h"
#include "bench/machine/machine.h"
#include "bench/timing/breakdown.h"
#include "strategies/backends/backend.h"
#include "strategies/schedules/executor.h"
#include "strategies/schedules/registry.h"

namespace {

using namespace stratagem;

constexpr std::chrono::seconds kLimit{30};

/// Gives each device a core of its own; empty if the process has fewer.
std::vector<std::vector<int>> one_core_each(std::size_t devices) {
  const std::vector<int> available = bench::available_cores();
  if (available.size() < devices) return {};
  std::vector<std::vector<int>> cores;
  for (std::size_t device = 0; device < devices; ++device) cores.push_back({available[device]});
  return cores;
}

void run_empty_step(const schedules::Schedule& schedule, const backends::DeviceGroup& group) {
  const auto origin = std::chrono::steady_clock::now();
  const auto execution = schedules::execute(schedule, group.devices, [](const auto&) {});
  runtime::synchronize_all(group.devices, kLimit);
  const auto timeline = schedules::timeline_of({&execution}, origin, schedules::end_of(execution));
  for (int device = 0; device < schedule.devices(); ++device) {
    bench::breakdown(timeline, device, schedule.stages());
  }
}

void empty_step(benchmark::State& state) {
  const auto stages = static_cast<int>(state.range(0));
  const auto micro_batches = static_cast<int>(state.range(1));
  const auto cores = one_core_each(static_cast<std::size_t>(stages));
  if (cores.empty()) {
    state.SkipWithError(fmt::format("{} devices need as many cores", stages).c_str());
    return;
  }
  backends::DeviceGroupOptions options;
  options.cores = cores;
  const backends::DeviceGroup group = backends::make_device_group(options);
  const schedules::Schedule schedule = schedules::make_schedule("1f1b", stages, micro_batches);
  std::size_t actions = 0;
  for (const auto& own : schedule.actions) actions += own.size();
  for (auto iteration : state) run_empty_step(schedule, group);
  state.counters["actions"] = static_cast<double>(actions);
  // Seconds an action; printed with a unit, "1.5u" is 1.5 microseconds.
  state.counters["each_action"] = benchmark::Counter(
      static_cast<double>(actions),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(empty_step)
    ->ArgNames({"devices", "micro_batches"})
    ->ArgsProduct({{1, 2}, {1, 4, 6, 48}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::library_main(argc, argv, "bench_harness_cost");
}
