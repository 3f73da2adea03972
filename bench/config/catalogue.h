// What the command line must know of strategies, models and schedules: plain facts that the caller
// takes from the registries, so that options and grids can be checked, and tested, without them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem::bench {

struct StrategyFacts {
  std::string name;
  std::vector<std::string> options;  // beyond the common ones, in snake_case
  bool multi_device = false;         // else it uses one of the job's devices
  bool one_process = false;          // drives all its devices
  std::vector<std::string> usual_dimensions = {"pipeline"};  // that it spreads over without --mesh
  std::vector<std::string> cannot_train = {};                // models

  bool reads(std::string_view option) const {
    return std::ranges::find(options, option) != options.end();
  }
  bool usually_spreads_over(std::string_view dimension) const {
    return std::ranges::find(usual_dimensions, dimension) != usual_dimensions.end();
  }
};

struct ModelFacts {
  std::string name;
  bool has_images = false;
  std::int64_t default_image_size = 0;  // pixels a side
  std::int64_t smallest_image_size = 0;
  std::int64_t layers = 0;
  bool has_tokens = false;
  bool takes_sizes = false;     // of its input and output, from options
  bool can_be_sharded = false;  // its layers, over the dimension tensor
  std::int64_t longest_sequence = 0;
  std::string family = {};  // of models that differ in their sizes alone; its own name: none
};

struct ScheduleFacts {
  std::string name;
  bool asks_for_stages = false;  // how many each device has
};

struct Catalogue {
  std::vector<StrategyFacts> strategies;
  std::vector<ModelFacts> models;
  std::vector<ScheduleFacts> schedules;
  std::vector<std::string> plugins = {};  // that some of these come from, as Plugin::identity

  /// nullptr for a name that is not there.
  const StrategyFacts* strategy(std::string_view name) const { return find(strategies, name); }
  const ModelFacts* model(std::string_view name) const { return find(models, name); }
  const ScheduleFacts* schedule(std::string_view name) const { return find(schedules, name); }

 private:
  template <class Facts>
  static const Facts* find(const std::vector<Facts>& all, std::string_view name) {
    const auto found = std::ranges::find(all, name, &Facts::name);
    return found == all.end() ? nullptr : &*found;
  }
};

}  // namespace stratagem::bench
