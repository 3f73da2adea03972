#include "bench/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "strategies/registry.h"

namespace stratagem::bench {
namespace {

using runtime::Mesh;
using strategies::StrategyEntry;

/// Stages of a replica where a mesh has replicas and stages, and the user names neither.
constexpr int usual_stages = 2;

Mesh default_mesh(const StrategyEntry& strategy, int devices) {
  if (!strategy.multi_device) return Mesh();
  if (strategy.dimensions.size() == 1) return Mesh({{strategy.dimensions.front(), devices}});
  if (devices < 2 * usual_stages || devices % usual_stages != 0) {
    throw std::invalid_argument(
        fmt::format("--devices {}: {} needs an even number of devices, 4 or more; or give --mesh",
                    devices, strategy.name));
  }
  return Mesh({{"data", devices / usual_stages}, {"pipeline", usual_stages}});
}

Mesh mesh_of(const Config& config, const StrategyEntry& strategy) {
  const int devices = static_cast<int>(config.devices);
  if (config.mesh == "auto" || !strategy.multi_device) return default_mesh(strategy, devices);
  const Mesh mesh = runtime::parse_mesh(config.mesh);
  for (const auto& [name, size] : mesh.dimensions()) {
    if (size > 1 && std::ranges::find(strategy.dimensions, name) == strategy.dimensions.end()) {
      throw std::invalid_argument(fmt::format("--mesh {}: {} has no dimension {}; it has {}",
                                              config.mesh, strategy.name, name,
                                              fmt::join(strategy.dimensions, ", ")));
    }
  }
  if (mesh.size() != devices) {
    throw std::invalid_argument(fmt::format("--mesh {}: its product is {}, and --devices is {}",
                                            config.mesh, mesh.size(), devices));
  }
  return mesh;
}

}  // namespace

std::vector<int> Placement::data_group(int rank) const {
  std::vector<int> members;
  for (int replica = 0; replica < replicas(); ++replica) {
    members.push_back(replica * pipeline_ranks() + rank % pipeline_ranks());
  }
  return members;
}

std::vector<int> Placement::pipeline_group(int rank) const {
  std::vector<int> members;
  for (int index = 0; index < pipeline_ranks(); ++index) {
    members.push_back(replica_of(rank) * pipeline_ranks() + index);
  }
  return members;
}

Placement placement_of(const Config& config) {
  const StrategyEntry& strategy = strategies::find_strategy(config.strategy);
  Placement placement{.mesh = mesh_of(config, strategy)};
  placement.ranks = placement.replicas();
  if (config.ranks == 0 || !strategy.multi_device) return placement;
  const int ranks = static_cast<int>(config.ranks);
  if (ranks % placement.replicas() != 0 || placement.devices() % ranks != 0) {
    throw std::invalid_argument(fmt::format(
        "--ranks {}: {} over {} needs a multiple of {} that divides its {} devices", ranks,
        strategy.name, placement.mesh.to_string(), placement.replicas(), placement.devices()));
  }
  placement.ranks = ranks;
  return placement;
}

}  // namespace stratagem::bench
