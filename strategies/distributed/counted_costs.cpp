#include "strategies/distributed/counted_costs.h"

#include <fmt/format.h>

#include <set>

namespace stratagem::distributed {

std::string difference_from_costs(const distributed::CommunicationCounts& counted,
                                  const strategies::Costs& costs, std::int64_t steps) {
  std::set<std::string> collectives;
  for (const auto& [name, count] : counted) collectives.insert(name);
  for (const auto& [name, cost] : costs.collectives) collectives.insert(name);
  collectives.erase("barrier");
  for (const std::string& name : collectives) {
    const auto found = counted.find(name);
    const auto formula = costs.collectives.find(name);
    const auto count = found == counted.end() ? CollectiveCount{} : found->second;
    const auto cost = formula == costs.collectives.end() ? CollectiveCount{} : formula->second;
    if (count.calls == cost.calls * steps && count.payload_bytes == cost.payload_bytes * steps) {
      continue;
    }
    const auto each = [&](std::int64_t all) {
      return static_cast<double>(all) / static_cast<double>(steps);
    };
    return fmt::format("{}: {:g} calls and {:.0f} bytes a step, by formula {} calls and {} bytes",
                       name, each(count.calls), each(count.payload_bytes), cost.calls,
                       cost.payload_bytes);
  }
  return "";
}

}  // namespace stratagem::distributed
