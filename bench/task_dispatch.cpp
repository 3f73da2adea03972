#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/tasks.h"
#include "strategies/runtime/memory_accounting.h"

namespace stratagem::bench {

nlohmann::json perform_task(const nlohmann::json& job, const TaskContext& context) {
  using Task = nlohmann::json (*)(const nlohmann::json&, const TaskContext&);
  static const std::map<std::string, Task> tasks = {{"check", check_task},
                                                    {"verify", verify_task},
                                                    {"calibrate_device", calibrate_device_task},
                                                    {"calibrate_stages", calibrate_stages_task},
                                                    {"measure", measure_task}};
  const auto name = job.at("task").get<std::string>();
  const auto task = tasks.find(name);
  if (task == tasks.end()) throw std::invalid_argument(fmt::format("unknown task \"{}\"", name));
  runtime::install_accounting_allocator();
  return task->second(job, context);
}

}  // namespace stratagem::bench
