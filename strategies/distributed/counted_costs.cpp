#include "strategies/distributed/counted_costs.h"

#include <fmt/format.h>

#include <set>

namespace stratagem::distributed {

std::string difference_from_costs(const distributed::CommunicationCounts& counted,
                                  const strategies::Costs& costs) {
  std::set<std::string> collectives;
  for (const auto& [name, count] : counted) collectives.insert(name);
  for (const auto& [name, cost] : costs.collectives) collectives.insert(name);
  collectives.erase("barrier");
  for (const std::string& name : collectives) {
    const auto found = counted.find(name);
    const auto formula = costs.collectives.find(name);
    const auto count = found == counted.end() ? CollectiveCount{} : found->second;
    const auto cost = formula == costs.collectives.end() ? CollectiveCount{} : formula->second;
    if (count.calls == cost.calls && count.payload_bytes == cost.payload_bytes) continue;
    return fmt::format("{}: {} calls and {} bytes a step, by formula {} calls and {} bytes", name,
                       count.calls, count.payload_bytes, cost.calls, cost.payload_bytes);
  }
  return "";
}

}  // namespace stratagem::distributed
