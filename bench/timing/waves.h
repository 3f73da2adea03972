// Waves: the pieces of work that run at the same time, each on its own device.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace stratagem::bench {

/// Returns the pieces by number; `device_of` holds the device of each. A wave has at most one of a
/// device, so the pieces of one device take turns, in their order.
inline std::vector<std::vector<std::size_t>> waves_of(const std::vector<std::size_t>& device_of) {
  std::vector<std::vector<std::size_t>> waves;
  std::map<std::size_t, std::size_t> turns;
  for (std::size_t piece = 0; piece < device_of.size(); ++piece) {
    const std::size_t wave = turns[device_of[piece]]++;
    if (wave == waves.size()) waves.emplace_back();
    waves[wave].push_back(piece);
  }
  return waves;
}

}  // namespace stratagem::bench
