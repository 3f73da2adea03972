#include "training/loop/not_finite.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/model.h"

namespace stratagem::training {
namespace {

/// Returns the sorted names of parameters, their gradients, and buffers.
std::vector<std::string> names_of(const models::Workload& workload) {
  const models::Model model = workload.make_meta_model();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : models::parameters(model.layers)) {
    names.push_back(name);
    names.push_back("gradient." + name);
  }
  for (const auto& [name, tensor] : models::buffers(model.layers)) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string not_finite_entries(const models::Workload& workload, strategies::Strategy& strategy,
                               const std::function<void(std::span<double>)>& sum_over_ranks) {
  const std::vector<std::string> names = names_of(workload);
  std::vector<double> pieces(names.size(), 0);  // [name]: the pieces that are not finite
  for (const auto& piece : strategy.own_state(/*with_gradients=*/true)) {
    const auto found = std::ranges::lower_bound(names, piece.name);
    if (found == names.end() || *found != piece.name) continue;
    if (!piece.values.isfinite().all().item<bool>()) {
      pieces[static_cast<std::size_t>(found - names.begin())] += 1;
    }
  }
  if (sum_over_ranks) sum_over_ranks(pieces);
  const auto count = std::ranges::count_if(pieces, [](double each) { return each > 0; });
  if (count == 0) return "";
  const auto first = std::ranges::find_if(pieces, [](double each) { return each > 0; });
  return fmt::format("; not finite: {}{}", names[static_cast<std::size_t>(first - pieces.begin())],
                     count == 1 ? "" : fmt::format(" and {} more", count - 1));
}

}  // namespace stratagem::training
