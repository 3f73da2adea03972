#include "bench/environment.h"

#include <fmt/format.h>

#include "bench/machine.h"
#include "bench/predict.h"

namespace stratagem::bench {

namespace {

/// A cached answer is good for the same code on the same kind of machine.
nlohmann::json identity_of(const std::string& build) {
  const MachineFacts facts = machine_facts();
  return {{"build", build},
          {"torch", torch_version()},
          {"cpu_model", facts.cpu_model},
          {"available_cores", facts.available_cores},
          {"huge_pages", facts.huge_pages},
          {"gpu_models", facts.gpu_models},
          {"gpu_driver", facts.gpu_driver}};
}

LaunchResult wrong_world(int wanted, int world) {
  LaunchResult refused;
  refused.status = LaunchStatus::usage;
  refused.error.message =
      fmt::format("the row needs {} ranks, and the launcher started {}", wanted, world);
  return refused;
}

}  // namespace

MeasureEnvironment make_environment(Catalogue catalogue, const Interrupt& interrupt,
                                    Observer& observer, bool verbose, Cluster* cluster) {
  MeasureEnvironment environment;
  environment.launch = [&interrupt, &observer, verbose, cluster](
                           const nlohmann::json& job, std::chrono::duration<double> limit) {
    LaunchOptions options;
    options.limit = limit;
    options.ranks = job.value("ranks", 1);
    const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json several = job.value("configs", nlohmann::json::array());
    const nlohmann::json& config = job.contains("config") ? job.at("config")
                                   : several.empty()      ? none
                                                          : several.front();
    options.rendezvous_timeout = std::chrono::duration<double>(config.value("timeout", 120.0));
    options.verbose = verbose;
    options.interrupt = &interrupt;
    options.on_wait = [&observer] { observer.tick(); };
    if (cluster == nullptr || options.ranks == 1) return launch(job, options);
    if (options.ranks == cluster->place().world_size) return cluster->launch(job, options);
    return wrong_world(options.ranks, cluster->place().world_size);
  };
  environment.ranks_share_cores = cluster == nullptr;
  environment.predict = predict_step_ms;
  environment.predict_from_two = predict_step_ms_from_two;
  environment.catalogue = std::move(catalogue);
  environment.build = build_id();
  environment.identity = identity_of(environment.build);
  environment.cores = available_cores();
  environment.watched = SystemPaths();
  environment.interrupt = &interrupt;
  return environment;
}

}  // namespace stratagem::bench
