// NoiseWatch reports, at the start and end of a measurement, what disturbs it, and records it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/machine/noise_sources.h"
#include "bench/measure/observer.h"

namespace stratagem::bench {

class NoiseWatch {
 public:
  /// Reports the present disturbances. Without paths it sees nothing and records nothing. `alone`:
  /// no ranks of this measurement have another parent on this machine.
  NoiseWatch(const std::optional<SystemPaths>& paths, bool alone, Observer& observer);

  /// Reports what happened since and the `others`, and writes all of it into the context.
  void finish(reports::Context& context, const std::vector<NoiseSource>& others);

 private:
  void take(const std::vector<NoiseSource>& found);

  std::optional<SystemPaths> paths_;
  bool alone_;
  Observer& observer_;
  MachineFacts facts_;
  NoiseCounters start_;
  std::vector<std::string> disturbances_;
};

}  // namespace stratagem::bench
