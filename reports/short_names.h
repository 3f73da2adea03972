// Shortens row names for a table: the shared parts appear once above it, the rest in the rows.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stratagem::reports {

struct ShortNames {
  std::string shared;              // "resnet50/batch:48/image:128"
  std::vector<std::string> names;  // one a row: "pipeline/devices:2/split:12"
};

/// Names are "strategy/model/key:value/...". The parts that only the strategy decides on (devices,
/// split, schedule, ...) are shared if all rows that have them agree; any other part only if every
/// row has it, because its absence means something. Names stay distinct.
ShortNames shorten(std::span<const std::string> names);

}  // namespace stratagem::reports
