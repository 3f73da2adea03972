#include <fmt/format.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/tasks.h"
#include "strategies/runtime/memory_accounting.h"
#include "strategies/runtime/rank_context.h"

namespace stratagem::bench {

namespace {

/// What the controller (bench/launch.h, bench/cluster.h) says of where the ranks meet.
runtime::Rendezvous rendezvous_from(const nlohmann::json& value) {
  runtime::Rendezvous rendezvous;
  const auto place = value.at("place").get<std::array<int, 4>>();
  rendezvous.place = {place[0], place[1], place[2], place[3]};
  rendezvous.address = value.at("address").get<std::string>();
  rendezvous.port = value.at("port").get<std::uint16_t>();
  rendezvous.serve = rendezvous.place.rank == 0;
  if (value.contains("listening_fd")) rendezvous.listening_fd = value["listening_fd"].get<int>();
  rendezvous.timeout = std::chrono::milliseconds(
      static_cast<std::int64_t>(value.at("timeout").get<double>() * 1000));
  return rendezvous;
}

}  // namespace

nlohmann::json perform_task(const nlohmann::json& job, const TaskContext& context) {
  using Task = nlohmann::json (*)(const nlohmann::json&, const TaskContext&);
  static const std::map<std::string, Task> tasks = {{"check", check_task},
                                                    {"verify", verify_task},
                                                    {"calibrate_device", calibrate_device_task},
                                                    {"calibrate_stages", calibrate_stages_task},
                                                    {"measure", measure_task},
                                                    {"collectives", collectives_task}};
  const auto name = job.at("task").get<std::string>();
  const auto task = tasks.find(name);
  if (task == tasks.end()) throw std::invalid_argument(fmt::format("unknown task \"{}\"", name));
  runtime::install_accounting_allocator();
  if (!job.contains("rendezvous")) return task->second(job, context);
  runtime::RankContext ranks(rendezvous_from(job.at("rendezvous")));
  TaskContext own = context;
  own.ranks = &ranks;
  nlohmann::json result = task->second(job, own);
  ranks.leave();
  return ranks.place().rank == 0 ? result : nlohmann::json();
}

}  // namespace stratagem::bench
