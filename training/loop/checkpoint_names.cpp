#include "training/loop/checkpoint_names.h"

#include <fmt/format.h>

#include "models/model.h"

namespace stratagem::training {

CheckpointNames::CheckpointNames(const models::Workload& workload) {
  const models::Model model = workload.make_meta_model();
  parameters = models::parameters(model.layers);
  buffers = models::buffers(model.layers);
}

std::vector<std::string> optimizer_entries(const models::OptimizerOptions& options) {
  if (options.kind == models::OptimizerOptions::Kind::sgd) {
    return options.momentum > 0 ? std::vector<std::string>{"momentum_buffer"}
                                : std::vector<std::string>{};
  }
  return {"exp_avg", "exp_avg_sq", "step"};
}

std::string own_name(const std::string& entry, const std::string& parameter) {
  return fmt::format("optimizer.{}.{}", entry, parameter);
}

}  // namespace stratagem::training
