// Row names for a table: what all rows share stands once above it, the rest in the rows.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stratagem::reports {

struct ShortNames {
  std::string shared;              // "resnet50/batch:48/image:128"
  std::vector<std::string> names;  // one a row: "pipeline/devices:2/split:12"
};

/// Names are "strategy/model/key:value/...". The parts that the strategy alone decides on
/// (devices, split, schedule, ...) are shared when all rows that have them agree; any other part
/// only when every row has it, because its absence means something. Names stay distinct.
ShortNames shorten(std::span<const std::string> names);

}  // namespace stratagem::reports
