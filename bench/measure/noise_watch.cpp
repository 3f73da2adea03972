#include "bench/measure/noise_watch.h"

#include <algorithm>

namespace stratagem::bench {

NoiseWatch::NoiseWatch(const std::optional<SystemPaths>& paths, bool alone, Observer& observer)
    : paths_(paths), alone_(alone), observer_(observer) {
  if (!paths_) return;
  facts_ = machine_facts(*paths_);
  start_ = read_noise(*paths_);
  take(standing_noise_sources(facts_, *paths_));
}

void NoiseWatch::finish(reports::Context& context, const std::vector<NoiseSource>& others) {
  if (!paths_) return;
  NoiseCounters end = read_noise(*paths_);
  end.own_are_all = alone_;
  take(noise_sources_between(start_, end));
  take(others);
  context.noise = noise_figures(facts_, start_, end, *paths_);
  context.disturbances = disturbances_;
}

void NoiseWatch::take(const std::vector<NoiseSource>& found) {
  for (const NoiseSource& disturbance : found) {
    const std::string line = to_string(disturbance);
    if (std::ranges::find(disturbances_, line) != disturbances_.end()) continue;
    disturbances_.push_back(line);
    observer_.note("disturbed by " + line);
  }
}

}  // namespace stratagem::bench
