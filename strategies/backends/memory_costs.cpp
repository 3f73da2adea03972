#include "strategies/backends/memory_costs.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace stratagem::backends {
namespace {

using runtime::MemoryCategory;

std::string difference(const runtime::Device& device, const strategies::StateBytes& formula) {
  const auto memory = device.memory().by_category;
  if (!memory) return "";
  const std::array<std::pair<MemoryCategory, std::int64_t>, 3> expected = {
      {{MemoryCategory::parameters, formula.parameters},
       {MemoryCategory::gradients, formula.gradients},
       {MemoryCategory::optimizer, formula.optimizer}}};
  for (const auto& [category, bytes] : expected) {
    if (memory->peak[category] == bytes) continue;
    return fmt::format("{}: {} took {} bytes at most, by formula {}", device.description().name(),
                       runtime::name(category), memory->peak[category], bytes);
  }
  return "";
}

}  // namespace

std::string difference_from_costs(runtime::DeviceSpan devices,
                                  const std::vector<strategies::StateBytes>& formula) {
  for (std::size_t index = 0; index < formula.size(); ++index) {
    const std::string found = difference(*devices[index], formula[index]);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace stratagem::backends
