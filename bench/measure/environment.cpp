#include "bench/measure/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

#include "bench/machine/machine.h"
#include "bench/machine/noise_sources.h"
#include "bench/machine/processor.h"
#include "bench/predict/predict.h"

namespace stratagem::bench {
namespace {

/// Returns what a cached answer is valid for: the same code on the same kind of machine.
nlohmann::json identity_of(const std::string& build) {
  const MachineFacts facts = machine_facts();
  return {{"build", build},
          {"torch", torch_version()},
          {"torch_build_id", torch_build_id()},
          {"cpu_model", facts.cpu_model},
          {"instruction_sets", instruction_sets()},
          {"available_cores", facts.available_cores},
          {"huge_pages", facts.huge_pages},
          {"gpu_models", facts.gpu_models},
          {"gpu_driver", facts.gpu_driver},
          {"kernel", facts.kernel},
          {"microcode", facts.microcode},
          {"environment", library_settings()}};
}

/// Launches the job and records the processor time of other programs.
LaunchResult watched_launch(const Job& job, const LaunchOptions& options) {
  const NoiseCounters before = read_noise();
  LaunchResult launched = launch(job, options);
  launched.conditions.other_processes_cores = other_processes_cores(before, read_noise());
  return launched;
}

bool is_on_cuda(const Config& config) { return config.device == "cuda"; }

LaunchResult wrong_world(int wanted, int world) {
  LaunchResult refused;
  refused.status = LaunchStatus::usage;
  refused.error.message =
      fmt::format("the row needs {} ranks, but the launcher started {}", wanted, world);
  return refused;
}

}  // namespace

bool may_fork(const Job& job, bool untimed) {
  return std::visit(
      [untimed](const auto& one) {
        using Kind = std::remove_cvref_t<decltype(one)>;
        if constexpr (std::is_same_v<Kind, CheckJob>) {
          return std::ranges::none_of(one.configs, is_on_cuda);
        } else {
          constexpr bool is_timed =
              !std::is_same_v<Kind, VerifyJob> && !std::is_same_v<Kind, ReferenceJob>;
          return !is_on_cuda(one.config) && (untimed || !is_timed);
        }
      },
      job);
}

MeasureEnvironment make_environment(Catalogue catalogue, const Interrupt& interrupt,
                                    Observer& observer, bool verbose, WorkerBody worker,
                                    Cluster* cluster) {
  MeasureEnvironment environment;
  environment.launch = [&interrupt, &observer, verbose, worker, cluster](const Job& job) {
    const JobHeader& header = header_of(job);
    LaunchOptions options;
    // The limit of an action, and time to start and to leave.
    constexpr double starting_and_leaving_s = 30;
    options.limit = std::chrono::duration<double>(header.timeout + starting_and_leaving_s);
    options.verbose = verbose;
    if (may_fork(job, is_untimed())) options.body = worker;
    options.interrupt = &interrupt;
    options.on_wait = [&observer] { observer.tick(); };
    options.on_interrupt = [&observer] { return observer.interrupted(); };
    if (cluster == nullptr) return watched_launch(job, options);
    if (header.ranks == 1) return launch(job, options);
    if (header.ranks == cluster->info().world_size) return cluster->launch(job, options);
    return wrong_world(header.ranks, cluster->info().world_size);
  };
  environment.ranks_share_cores = cluster == nullptr;
  environment.predict = predict;
  environment.catalogue = std::move(catalogue);
  environment.build = build_id();
  environment.identity = identity_of(environment.build);
  environment.cores = available_cores();
  environment.watched = SystemPaths();
  environment.interrupt = &interrupt;
  environment.untimed = is_untimed();
  return environment;
}

}  // namespace stratagem::bench
