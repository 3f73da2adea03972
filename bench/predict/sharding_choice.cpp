#include "bench/predict/sharding_choice.h"

#include <algorithm>

#include "bench/config/placement.h"

namespace stratagem::bench {

Config with_choice(Config config, const ShardingChoice& choice) {
  config.prefetch = choice.prefetch;
  config.reshard_after_forward = choice.reshard_after_forward;
  return config;
}

std::vector<ShardingChoice> sharding_choices(const Config& config, const StageCosts& calibration) {
  constexpr std::int64_t widest = 4;  // widest window tried
  const bool frees = sharded_state(config) == "parameters";
  std::vector<ShardingChoice> choices;
  for (const bool reshards : {true, false}) {
    if (!reshards && !frees) continue;
    for (std::int64_t prefetch = 0; prefetch <= widest; ++prefetch) {
      ShardingChoice choice{.prefetch = prefetch, .reshard_after_forward = reshards};
      choice.predicted = predict(with_choice(config, choice), calibration);
      choices.push_back(choice);
    }
  }
  std::ranges::stable_sort(choices, {}, [](const auto& each) { return each.predicted.step_ms; });
  return choices;
}

}  // namespace stratagem::bench
