// A picture as bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace stratagem::datasets {

struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 3;
  std::vector<std::uint8_t> bytes = {};  // [height, width, channels]
};

}  // namespace stratagem::datasets
