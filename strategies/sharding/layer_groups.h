// Which layers are gathered and scattered together.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "models/model.h"
#include "strategies/options.h"

namespace stratagem::sharding {

struct LayerGroups {
  std::vector<int> per_stage = {};           // [stage]: how many
  std::vector<std::size_t> boundaries = {};  // the layers that begin groups 1, 2, ...
  std::set<int> empty = {};                  // groups without parameters
};

/// Groups of one layer with parameters each or, with `group_bytes`, of as many as have no more
/// together; layers without parameters stay with those before them. No group crosses one of
/// `cuts`, the layers that begin stages 1, 2, ...
LayerGroups group_layers(models::LayerSpan layers, const std::vector<std::size_t>& cuts,
                         double group_bytes);

/// Those of a strategy's options. A narrow model's groups shrink with it, so that it has about as
/// many.
LayerGroups groups_of(const models::LayerList& layers, const strategies::StrategyOptions& options,
                      double width);

}  // namespace stratagem::sharding
