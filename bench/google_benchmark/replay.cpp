#include "bench/google_benchmark/replay.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "bench/google_benchmark/library_versions.h"
#include "bench/machine/terminal.h"

namespace stratagem::bench {

namespace {

using benchmark::BenchmarkReporter;
using ReporterPointer = std::unique_ptr<BenchmarkReporter>;

constexpr double milliseconds_in_second = 1e3;

/// The processor milliseconds a step of every good repetition, by row name.
using ProcessorTimes = std::map<std::string, std::vector<double>>;

ProcessorTimes processor_times(const std::vector<reports::Row>& rows) {
  ProcessorTimes times;
  for (const reports::Row& row : rows) {
    for (const reports::Repetition& repetition : row.repetitions) {
      if (!repetition.error) times[row.name].push_back(repetition.cpu_ms);
    }
  }
  return times;
}

/// Returns the counters that every good repetition has: a table of the library has no gaps.
std::set<std::string> common_counters(const std::vector<reports::Row>& rows) {
  std::optional<std::set<std::string>> common;
  for (const reports::Row& row : rows) {
    for (const reports::Repetition& repetition : row.repetitions) {
      if (repetition.error) continue;
      if (!common) {
        common.emplace();
        for (const auto& [name, value] : repetition.counters) common->insert(name);
      }
      std::erase_if(*common, [&](const auto& name) { return !repetition.counters.contains(name); });
    }
  }
  return common.value_or(std::set<std::string>());
}

/// Passes runs on under the rows' own names, with the processor time of the measurement: the
/// library adds to the name how it ran the loop, and counts the replay's processor time.
class RowReporter : public BenchmarkReporter {
 public:
  struct Target {
    ReporterPointer reporter;
    bool aggregates_only = false;
  };

  RowReporter(std::vector<Target> targets, ProcessorTimes times)
      : targets_(std::move(targets)), times_(std::move(times)) {}

  bool ReportContext(const Context& context) override {
    constexpr std::size_t longest_aggregate = 7;  // "_median"
    Context own = context;
    own.name_field_width = 0;
    for (const auto& [name, ignored] : times_) {
      own.name_field_width = std::max(own.name_field_width, name.size() + longest_aggregate);
    }
    const auto reports = [&](const Target& target) { return target.reporter->ReportContext(own); };
    return std::all_of(targets_.begin(), targets_.end(), reports);
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> own = runs;
    for (Run& run : own) {
      const std::string name = run.run_name.function_name;
      run.run_name = benchmark::BenchmarkName();
      run.run_name.function_name = name;
      correct_processor_time(run, times_[name]);
    }
    for (const Target& target : targets_) {
      const std::vector<Run> kept = target.aggregates_only ? aggregates(own) : own;
      // For an empty list, the library's CSV prints a header without columns for counters.
      if (!kept.empty()) target.reporter->ReportRuns(kept);
    }
  }

  void Finalize() override {
    for (const Target& target : targets_) target.reporter->Finalize();
  }

 private:
  /// Removes single runs, except those of a row without aggregates.
  std::vector<Run> aggregates(const std::vector<Run>& runs) const {
    std::vector<Run> kept;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(kept), [&](const Run& run) {
      const auto times = times_.find(run.run_name.function_name);
      const bool aggregated = times != times_.end() && times->second.size() > 1;
      return run.run_type == Run::RT_Aggregate || !aggregated;
    });
    return kept;
  }

  static void correct_processor_time(Run& run, const std::vector<double>& times) {
    if (was_skipped(run) || times.empty()) return;
    double milliseconds = 0;
    if (run.run_type == Run::RT_Iteration) {
      const auto index = static_cast<std::size_t>(std::max<std::int64_t>(run.repetition_index, 0));
      milliseconds = times[std::min(index, times.size() - 1)];
    } else {
      for (const auto& statistic : *run.statistics) {
        if (statistic.name_ == run.aggregate_name) milliseconds = statistic.compute_(times);
      }
    }
    // The library divides a time, but not a fraction, by the iterations.
    const bool is_fraction =
        run.run_type == Run::RT_Aggregate && run.aggregate_unit == benchmark::kPercentage;
    run.cpu_accumulated_time =
        is_fraction ? milliseconds
                    : milliseconds / milliseconds_in_second * static_cast<double>(run.iterations);
  }

  std::vector<Target> targets_;
  ProcessorTimes times_;
};

void replay_repetition(benchmark::State& state, const reports::Repetition& repetition,
                       std::int64_t samples_per_step, const std::set<std::string>& counters) {
  if (repetition.error) {
    state.SkipWithError(repetition.error->message.c_str());
    return;
  }
  std::size_t step = 0;
  for ([[maybe_unused]] const auto& iteration : state) {
    state.SetIterationTime(repetition.step_ms[step] / milliseconds_in_second);
    step = (step + 1) % repetition.step_ms.size();
  }
  if (samples_per_step > 0) {
    state.SetItemsProcessed(static_cast<std::int64_t>(repetition.step_ms.size()) *
                            samples_per_step);
  }
  for (const std::string& name : counters) state.counters[name] = repetition.counters.at(name);
}

std::size_t steps_of(const reports::Row& row) {
  for (const reports::Repetition& repetition : row.repetitions) {
    if (!repetition.error) return repetition.step_ms.size();
  }
  return 1;
}

bool has_result(const reports::Row& row) {
  return std::ranges::any_of(row.repetitions, [](const auto& one) { return !one.error; });
}

benchmark::TimeUnit time_unit(const std::string& name) {
  static const std::map<std::string, benchmark::TimeUnit> units = {{"ns", benchmark::kNanosecond},
                                                                   {"us", benchmark::kMicrosecond},
                                                                   {"ms", benchmark::kMillisecond},
                                                                   {"s", benchmark::kSecond}};
  return units.at(name);
}

void register_row(const reports::Row& row, const std::set<std::string>& counters,
                  benchmark::TimeUnit unit) {
  auto* registered = benchmark::RegisterBenchmark(
      row.name.c_str(), [&row, &counters, next = std::size_t{0}](benchmark::State& state) mutable {
        const std::size_t index = std::min(next++, row.repetitions.size() - 1);
        replay_repetition(state, row.repetitions[index], row.samples_per_step, counters);
      });
  registered->UseManualTime()
      ->Unit(unit)
      ->Iterations(static_cast<benchmark::IterationCount>(steps_of(row)))
      ->Repetitions(static_cast<int>(row.repetitions.size()));
}

/// Prints nothing.
class Silence : public BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

ReporterPointer console_reporter(const ConsoleFlags& flags) {
  using Console = benchmark::ConsoleReporter;
  const int color = flags.color.value_or(has_color(stdout)) ? Console::OO_Color : 0;
  const int tabular = flags.counters_tabular ? Console::OO_Tabular : 0;
  return std::make_unique<Console>(static_cast<Console::OutputOptions>(color | tabular));
}

// The library deprecates its CSV reporter, but this release still has it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
ReporterPointer make_reporter(const std::string& format, const ConsoleFlags& console) {
  if (format == "json") return std::make_unique<Silence>();
  if (format == "csv") return std::make_unique<benchmark::CSVReporter>();
  return console_reporter(console);
}
#pragma GCC diagnostic pop

/// Returns the library's command line, into which the library keeps pointers.
std::vector<std::string> library_words(const BenchmarkFlags& flags, const std::string& program) {
  // Overrides the environment's flags, which have been applied already.
  return {program,
          "--benchmark_format=console",
          "--benchmark_out=",
          "--benchmark_filter=all",
          "--benchmark_list_tests=false",
          "--benchmark_enable_random_interleaving=false",
          "--v=" + flags.console.verbosity};
}

void initialize(std::vector<std::string>& words, const BenchmarkFlags& flags) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  for (const auto& [key, value] : flags.context) benchmark::AddCustomContext(key, value);
}

}  // namespace

std::string replay(const std::vector<reports::Row>& rows, const BenchmarkFlags& flags,
                   const std::string& program) {
  std::vector<std::string> words = library_words(flags, program);
  initialize(words, flags);
  // Rows without a result come last: the first row decides which columns a table has.
  const std::set<std::string> counters = common_counters(rows);
  for (const bool with_result : {true, false}) {
    for (const reports::Row& row : rows) {
      if (row.repetitions.empty() || has_result(row) != with_result) continue;
      register_row(row, counters, time_unit(flags.console.time_unit));
    }
  }
  std::ostringstream file;
  std::ostringstream remarks;  // dropped for a file; a console prints them on standard error
  std::vector<RowReporter::Target> targets;
  targets.push_back({make_reporter(flags.format, flags.console),
                     flags.report_aggregates_only || flags.display_aggregates_only});
  if (!flags.out.empty() && flags.out_format != "json") {
    targets.push_back(
        {make_reporter(flags.out_format, {.color = false}), flags.report_aggregates_only});
    targets.back().reporter->SetOutputStream(&file);
    targets.back().reporter->SetErrorStream(&remarks);
  }
  RowReporter reporter(std::move(targets), processor_times(rows));
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return file.str();
}

}  // namespace stratagem::bench
