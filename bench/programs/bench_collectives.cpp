// Times collectives between ranks by message size and checks their results.
//
// Prints algorithm and bus bandwidth of each, and the link model that fits the times.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/config/catalogue.h"
#include "bench/config/core_demand.h"
#include "bench/config/options.h"
#include "bench/config/placement.h"
#include "bench/config/plugins.h"
#include "bench/google_benchmark/collectives.h"
#include "bench/google_benchmark/command_line.h"
#include "bench/google_benchmark/replay.h"
#include "bench/launch/exit_codes.h"
#include "bench/machine/core_lock.h"
#include "bench/machine/machine.h"
#include "bench/measure/environment.h"
#include "bench/measure/job_launch.h"
#include "bench/measure/preparation.h"
#include "bench/measure/progress.h"
#include "bench/predict/link_fit.h"
#include "bench/worker/worker_main.h"
#include "reports/anonymous.h"
#include "reports/atomic_file.h"
#include "reports/json_writer.h"
#include "reports/row_summary.h"
#include "reports/statistics.h"
#include "reports/text_table.h"
#include "strategies/distributed/c10d_store.h"

namespace stratagem::bench {
namespace {

constexpr const char* program = "bench_collectives";
constexpr std::int64_t most_ranks = 1024;

struct Options {
  std::vector<std::string> collectives = {};  // none: all that differ
  std::string low = "1K";
  std::string high = "256M";
  std::int64_t factor = 4;
  std::int64_t ranks = 2;
  std::string device = "cpu";
  std::vector<std::int64_t> device_ids = {};
  std::string backend = "auto";
  std::string interface = "auto";
  double timeout = 120;
  std::int64_t repetitions = 3;
  bool oversubscribe = false;
  bool quiet = false;
  bool anonymous = false;
  std::string out;
};

void add_options(CLI::App& app, Options& options) {
  app.get_help_ptr()->description("print this page");
  app.add_option("--collectives", options.collectives,
                 fmt::format("collectives to measure, joined by commas: {} [all that differ]",
                             fmt::join(collective_names(), ", ")))
      ->delimiter(',')
      ->option_text("NAME,NAME");
  app.add_option("--min-bytes", options.low, "size of the smallest message [1K]")
      ->option_text("SIZE");
  app.add_option("--max-bytes", options.high, "size of the largest message [256M]")
      ->option_text("SIZE");
  app.add_option("--step-factor", options.factor,
                 "factor between the sizes of successive messages [4]")
      ->check(CLI::Range(2, 1024))
      ->option_text("N");
  app.add_option("--ranks", options.ranks, "number of processes; each has one device [2]")
      ->check(CLI::Range(std::int64_t{2}, most_ranks))
      ->option_text("N");
  app.add_option("--device", options.device, "kind of device: cpu, cuda [cpu]")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->option_text("NAME");
  app.add_option("--device-ids", options.device_ids,
                 "index of each rank's device, joined by +; a repeated index, as in 0+0, shares "
                 "the device and needs gloo [0 to ranks - 1]")
      ->delimiter('+')
      ->check(CLI::Range(std::int64_t{0}, most_ranks - 1))
      ->option_text("N+N");
  app.add_option("--backend", options.backend,
                 "library of the collectives: gloo, nccl, auto (gloo on CPUs, nccl on CUDA) [auto]")
      ->check(CLI::IsMember({"auto", "gloo", "nccl"}))
      ->option_text("NAME");
  app.add_option("--interface", options.interface,
                 "network interface between ranks; auto: GLOO_SOCKET_IFNAME, else loopback [auto]")
      ->option_text("NAME");
  app.add_option("--timeout", options.timeout,
                 "time limit of a wait for another rank, in seconds [120]")
      ->check(CLI::PositiveNumber)
      ->option_text("X");
  app.add_option("--repetitions", options.repetitions,
                 "number of rounds; a round launches every collective once [3]")
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  app.add_flag("--oversubscribe", options.oversubscribe,
               "allow more ranks than cores; the results are marked");
  app.add_flag("--quiet", options.quiet, "print no progress");
  app.add_flag("--anonymous", options.anonymous,
               "omit the host name, folders and environment variables from the results");
  app.add_option("--out", options.out, "write the results to FILE as JSON")->option_text("FILE");
}

/// Returns what the task needs to open devices and groups: a row with one device a rank.
Config config_of(const Options& options) {
  Config config;
  config.strategy = "ddp";
  config.model = "toy";
  set_value(config, find_option("device"), options.device, "--device", nullptr);
  config.devices = options.ranks;
  config.device_ids = options.device_ids;
  config.global_batch_size = options.ranks;
  set_value(config, find_option("backend"), options.backend, "--backend", nullptr);
  if (config.backend == "auto") {
    set_value(config, find_option("backend"), backend_of(config).name(), "--backend", nullptr);
  }
  config.interface = options.interface;
  config.timeout = options.timeout;
  config.repetitions = options.repetitions;
  config.oversubscribe = options.oversubscribe;
  return config;
}

struct Family {
  std::string collective;
  std::vector<std::int64_t> bytes;
  std::vector<reports::Row> rows;  // [size]
};

std::vector<Family> families_of(const Options& options, const Config& config,
                                const BenchmarkFlags& flags) {
  const auto sizes = message_sizes(parse_bytes(options.low, "--min-bytes"),
                                   parse_bytes(options.high, "--max-bytes"), options.factor);
  std::vector<Family> families;
  for (const std::string& collective :
       options.collectives.empty() ? distinct_collectives(config) : options.collectives) {
    bus_factor(collective, static_cast<int>(config.devices));  // refuses an unknown one
    Family family{collective, {}, {}};
    for (const std::int64_t bytes : sizes) {
      const std::string name = collective_row_name(collective, config, bytes);
      if (matching(flags.filter, {name}).empty()) continue;
      family.bytes.push_back(bytes);
      family.rows.push_back(collective_row(collective, config, bytes));
    }
    if (!family.rows.empty()) families.push_back(std::move(family));
  }
  return families;
}

/// Returns false if the user interrupts.
bool measure_round(Family& family, const Config& config, int round,
                   const MeasureEnvironment& environment) {
  auto job = job_about<CollectivesJob>(config, static_cast<int>(config.devices));
  job.collective = family.collective;
  job.bytes = family.bytes;
  const auto launched = launch_job(environment, job);
  if (launched.status == LaunchStatus::interrupted) return false;
  for (std::size_t index = 0; index < family.rows.size(); ++index) {
    reports::Row& row = family.rows[index];
    if (launched.status != LaunchStatus::ok) {
      row.repetitions.push_back(failed_repetition(round, launched.error));
      continue;
    }
    row.repetitions.push_back(collective_repetition(family.collective,
                                                    static_cast<int>(config.devices), round,
                                                    launched.result.messages.at(index)));
    const std::size_t hosts =
        environment.ranks_share_cores ? 1 : static_cast<std::size_t>(config.devices);
    row.repetitions.back().marks = marks_of(config, hosts * environment.cores.size());
  }
  return true;
}

/// Returns the median over the rounds; negative if none is good.
double median_counter(const reports::Row& row, const std::string& counter) {
  std::vector<double> values;
  for (const auto& repetition : row.repetitions) {
    if (!repetition.error) values.push_back(repetition.counters.at(counter));
  }
  return values.empty() ? -1 : reports::median(values);
}

double median_ms(const reports::Row& row) {
  const double rate = median_counter(row, "algorithm_gb_per_s");
  return rate <= 0 ? -1 : median_counter(row, "bytes") / rate / 1e6;
}

void print_table(const std::vector<Family>& families) {
  using Column = reports::TextColumn;
  Column name{.header = "collective", .right_aligned = false, .importance = 5};
  Column size{.header = "size", .importance = 4};
  Column sent{.header = "sent", .importance = 2};
  Column time{.header = "time ms", .importance = 4};
  Column algorithm{.header = "algorithm GB/s", .importance = 3};
  Column bus{.header = "bus GB/s", .importance = 3};
  for (const Family& family : families) {
    for (std::size_t index = 0; index < family.rows.size(); ++index) {
      const reports::Row& row = family.rows[index];
      const auto shown = [](double value) {
        return value < 0 ? std::string("failed") : reports::significant(value, 4);
      };
      name.cells.push_back(family.collective);
      size.cells.push_back(bytes_text(family.bytes[index]));
      const double wire = median_counter(row, "wire_bytes");
      sent.cells.push_back(wire < 0 ? "" : bytes_text(static_cast<std::int64_t>(wire)));
      time.cells.push_back(shown(median_ms(row)));
      algorithm.cells.push_back(shown(median_counter(row, "algorithm_gb_per_s")));
      bus.cells.push_back(shown(median_counter(row, "bus_gb_per_s")));
    }
  }
  fmt::print("{}", reports::render_table({name, size, sent, time, algorithm, bus}, 0));
}

/// Returns latency and bandwidth of each collective, by name.
std::map<std::string, schedules::LinkModel> link_models(const std::vector<Family>& families) {
  std::map<std::string, schedules::LinkModel> models;
  for (const Family& family : families) {
    std::vector<TransferTime> times;
    for (const reports::Row& row : family.rows) {
      if (const double ms = median_ms(row); ms > 0) {
        times.push_back({median_counter(row, "bytes"), ms});
      }
    }
    if (times.size() > 1) models[family.collective] = fit_link(times);
  }
  return models;
}

reports::ResultFile results_of(std::vector<Family> families, const std::string& command_line) {
  reports::ResultFile results;
  results.context = make_context(command_line);
  results.context.metrics = {
      {.name = "real_time", .unit = "ms", .better = "lower", .deterministic = false},
      {.name = "algorithm_gb_per_s", .unit = "GB/s", .better = "higher", .deterministic = false},
      {.name = "bus_gb_per_s", .unit = "GB/s", .better = "higher", .deterministic = false}};
  for (const auto& [collective, model] : link_models(families)) {
    results.context.calibration.emplace_back(collective + "_latency_ms", model.latency_ms);
    if (model.gigabytes_per_second > 0) {
      results.context.calibration.emplace_back(collective + "_gb_per_s",
                                               model.gigabytes_per_second);
    }
  }
  for (Family& family : families) {
    for (reports::Row& row : family.rows) {
      if (!row.repetitions.empty()) results.rows.push_back(std::move(row));
    }
  }
  return results;
}

void print_link_models(const std::vector<Family>& families) {
  for (const auto& [collective, model] : link_models(families)) {
    if (model.gigabytes_per_second > 0) {
      fmt::print("{}: {} ms + size / {} GB/s\n", collective, reports::significant(model.latency_ms),
                 reports::significant(model.gigabytes_per_second));
    } else {
      fmt::print("{}: {} ms at each of these sizes\n", collective,
                 reports::significant(model.latency_ms));
    }
  }
}

bool failed(const std::vector<Family>& families) {
  for (const Family& family : families) {
    for (const reports::Row& row : family.rows) {
      for (const auto& repetition : row.repetitions) {
        if (repetition.error) return true;
      }
    }
  }
  return false;
}

std::vector<std::string> names_of(const std::vector<Family>& families) {
  std::vector<std::string> names;
  for (const Family& family : families) {
    for (const reports::Row& row : family.rows) names.push_back(row.name);
  }
  return names;
}

struct Call {
  Options options;
  BenchmarkFlags flags;
  std::string command_line;
};

int measure(const Call& call, const Config& config, std::vector<Family> families,
            const Interrupt& interrupt, Cluster* cluster) {
  const auto& [options, flags, command_line] = call;
  const std::string out = flags.out.empty() ? options.out : flags.out;
  reports::check_outputs({out});
  Progress progress(Progress::style(options.quiet));
  const MeasureEnvironment environment = make_environment(
      registered_catalogue(), interrupt, progress, /*verbose=*/false, worker_main, cluster);
  check_rows({config}, environment, progress);
  const CoreLocks locks =
      hold_cores(cores_of(config, environment.cores), config.timeout, environment, progress);
  progress.phase("measuring", families.size() * static_cast<std::size_t>(options.repetitions));
  bool wanted = true;
  for (int round = 0; wanted && round < options.repetitions; ++round) {
    for (Family& family : families) {
      progress.begin(family.collective, fmt::format("round {}/{}", round + 1, options.repetitions));
      wanted = wanted && measure_round(family, config, round, environment);
      if (!family.rows.back().repetitions.empty() && family.rows.back().repetitions.back().error) {
        progress.note(family.collective + ": " +
                      reports::describe(*family.rows.back().repetitions.back().error));
      }
      progress.end(std::nullopt);
    }
  }
  progress.finish();
  if (!wanted) throw Interrupted();
  const bool lost = failed(families);
  const bool own_table = flags.format == "console" && flags.console == ConsoleFlags();
  if (own_table) {
    print_table(families);
    print_link_models(families);
  }
  reports::ResultFile results = results_of(std::move(families), command_line);
  if (options.anonymous) reports::anonymise(results);
  std::string replayed;
  if (!own_table || flags.out_format != "json") {
    replayed = replay(results.rows, flags, program);
  }
  if (flags.format == "json") fmt::print("{}\n", reports::results_json(results).dump(1));
  if (out.empty()) return lost ? exit_codes::lost : exit_codes::done;
  if (flags.out_format == "json") {
    reports::write_results(out, results);
  } else {
    reports::write_file_atomically(out, replayed);
  }
  return lost ? exit_codes::lost : exit_codes::done;
}

int perform(const std::vector<std::string>& arguments) {
  Call call;
  call.flags = parse_benchmark_flags(arguments);
  call.command_line = fmt::format("{} {}", program, fmt::join(arguments, " "));
  CLI::App app(description_of(program), program);
  add_options(app, call.options);
  LauncherOptions launcher;
  add_launcher_options(app, launcher);
  add_plugin_option(app);
  if (!parse(app, call.flags)) return exit_codes::done;
  const auto named = static_cast<std::int64_t>(call.options.device_ids.size());
  const bool has_ranks = app.count("--ranks") > 0;
  if (named > 1 && !has_ranks) call.options.ranks = std::min(named, most_ranks);
  if (call.flags.repetitions) call.options.repetitions = *call.flags.repetitions;
  const LauncherSession session(launcher);
  session.fit(call.options.ranks, has_ranks);
  if (named > 0 && named != call.options.ranks) {
    throw std::invalid_argument(fmt::format("--device-ids: {} for {} ranks; give each rank one",
                                            named == 1 ? "1 id" : fmt::format("{} ids", named),
                                            call.options.ranks));
  }
  Config config = config_of(call.options);
  // Under a launcher each rank counts its own devices.
  if (session.is_alone()) leave_out_usual_ids(config);
  const std::vector<Family> families = families_of(call.options, config, call.flags);
  if (const auto code = list_rows(program, call.flags, names_of(families), session)) return *code;
  return session.run({.open = distributed::connect_store, .timeout = config.timeout},
                     [&](const Interrupt& interrupt, Cluster* cluster) {
                       return measure(call, config, families, interrupt, cluster);
                     });
}

}  // namespace
}  // namespace stratagem::bench

int main(int argc, char** argv) {
  using namespace stratagem::bench;
  return program_main(argc, argv, program, perform);
}
