#include "bench/placement.h"

#include "strategies/registry.h"
#include "strategies/runtime/mesh.h"

namespace stratagem::bench {

int devices_of(const Config& config) {
  return strategies::find_strategy(config.strategy).multi_device ? static_cast<int>(config.devices)
                                                                 : 1;
}

int ranks_of(const Config& config) {
  return strategies::find_strategy(config.strategy).rank_per_device ? devices_of(config) : 1;
}

int stages_of(const Config& config) { return devices_of(config) / ranks_of(config); }

std::string mesh_of(const Config& config) {
  return runtime::Mesh({{"data", ranks_of(config)}, {"pipeline", stages_of(config)}}).to_string();
}

}  // namespace stratagem::bench
