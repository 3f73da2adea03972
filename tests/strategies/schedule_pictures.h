// What schedules look like: one line a device, one column a unit of time, forward and backward one
// unit each. The stage is the device, so `F2` in the second line is 1F2. Idle is `..`.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace stratagem::schedules {

struct SchedulePicture {
  const char* name;
  int stages;
  int micro_batches;
  const char* picture;
};

inline const std::vector<SchedulePicture>& schedule_pictures() {
  static const std::vector<SchedulePicture> pictures = {
      {"naive", 1, 1, R"(
F0 B0
)"},
      {"naive", 1, 2, R"(
F0 B0 F1 B1
)"},
      {"naive", 1, 3, R"(
F0 B0 F1 B1 F2 B2
)"},
      {"naive", 2, 1, R"(
F0 .. .. B0
.. F0 B0 ..
)"},
      {"naive", 2, 2, R"(
F0 .. .. B0 F1 .. .. B1
.. F0 B0 .. .. F1 B1 ..
)"},
      {"naive", 2, 3, R"(
F0 .. .. B0 F1 .. .. B1 F2 .. .. B2
.. F0 B0 .. .. F1 B1 .. .. F2 B2 ..
)"},
      {"naive", 3, 1, R"(
F0 .. .. .. .. B0
.. F0 .. .. B0 ..
.. .. F0 B0 .. ..
)"},
      {"naive", 3, 2, R"(
F0 .. .. .. .. B0 F1 .. .. .. .. B1
.. F0 .. .. B0 .. .. F1 .. .. B1 ..
.. .. F0 B0 .. .. .. .. F1 B1 .. ..
)"},
      {"naive", 3, 3, R"(
F0 .. .. .. .. B0 F1 .. .. .. .. B1 F2 .. .. .. .. B2
.. F0 .. .. B0 .. .. F1 .. .. B1 .. .. F2 .. .. B2 ..
.. .. F0 B0 .. .. .. .. F1 B1 .. .. .. .. F2 B2 .. ..
)"},
      {"naive", 4, 1, R"(
F0 .. .. .. .. .. .. B0
.. F0 .. .. .. .. B0 ..
.. .. F0 .. .. B0 .. ..
.. .. .. F0 B0 .. .. ..
)"},
      {"naive", 4, 2, R"(
F0 .. .. .. .. .. .. B0 F1 .. .. .. .. .. .. B1
.. F0 .. .. .. .. B0 .. .. F1 .. .. .. .. B1 ..
.. .. F0 .. .. B0 .. .. .. .. F1 .. .. B1 .. ..
.. .. .. F0 B0 .. .. .. .. .. .. F1 B1 .. .. ..
)"},
      {"naive", 4, 3, R"(
F0 .. .. .. .. .. .. B0 F1 .. .. .. .. .. .. B1 F2 .. .. .. .. .. .. B2
.. F0 .. .. .. .. B0 .. .. F1 .. .. .. .. B1 .. .. F2 .. .. .. .. B2 ..
.. .. F0 .. .. B0 .. .. .. .. F1 .. .. B1 .. .. .. .. F2 .. .. B2 .. ..
.. .. .. F0 B0 .. .. .. .. .. .. F1 B1 .. .. .. .. .. .. F2 B2 .. .. ..
)"},
      {"gpipe", 1, 1, R"(
F0 B0
)"},
      {"gpipe", 1, 2, R"(
F0 F1 B1 B0
)"},
      {"gpipe", 1, 3, R"(
F0 F1 F2 B2 B1 B0
)"},
      {"gpipe", 1, 4, R"(
F0 F1 F2 F3 B3 B2 B1 B0
)"},
      {"gpipe", 1, 5, R"(
F0 F1 F2 F3 F4 B4 B3 B2 B1 B0
)"},
      {"gpipe", 2, 1, R"(
F0 .. .. B0
.. F0 B0 ..
)"},
      {"gpipe", 2, 2, R"(
F0 F1 .. .. B1 B0
.. F0 F1 B1 B0 ..
)"},
      {"gpipe", 2, 3, R"(
F0 F1 F2 .. .. B2 B1 B0
.. F0 F1 F2 B2 B1 B0 ..
)"},
      {"gpipe", 2, 4, R"(
F0 F1 F2 F3 .. .. B3 B2 B1 B0
.. F0 F1 F2 F3 B3 B2 B1 B0 ..
)"},
      {"gpipe", 2, 5, R"(
F0 F1 F2 F3 F4 .. .. B4 B3 B2 B1 B0
.. F0 F1 F2 F3 F4 B4 B3 B2 B1 B0 ..
)"},
      {"gpipe", 3, 1, R"(
F0 .. .. .. .. B0
.. F0 .. .. B0 ..
.. .. F0 B0 .. ..
)"},
      {"gpipe", 3, 2, R"(
F0 F1 .. .. .. .. B1 B0
.. F0 F1 .. .. B1 B0 ..
.. .. F0 F1 B1 B0 .. ..
)"},
      {"gpipe", 3, 3, R"(
F0 F1 F2 .. .. .. .. B2 B1 B0
.. F0 F1 F2 .. .. B2 B1 B0 ..
.. .. F0 F1 F2 B2 B1 B0 .. ..
)"},
      {"gpipe", 3, 4, R"(
F0 F1 F2 F3 .. .. .. .. B3 B2 B1 B0
.. F0 F1 F2 F3 .. .. B3 B2 B1 B0 ..
.. .. F0 F1 F2 F3 B3 B2 B1 B0 .. ..
)"},
      {"gpipe", 3, 5, R"(
F0 F1 F2 F3 F4 .. .. .. .. B4 B3 B2 B1 B0
.. F0 F1 F2 F3 F4 .. .. B4 B3 B2 B1 B0 ..
.. .. F0 F1 F2 F3 F4 B4 B3 B2 B1 B0 .. ..
)"},
      {"gpipe", 4, 1, R"(
F0 .. .. .. .. .. .. B0
.. F0 .. .. .. .. B0 ..
.. .. F0 .. .. B0 .. ..
.. .. .. F0 B0 .. .. ..
)"},
      {"gpipe", 4, 2, R"(
F0 F1 .. .. .. .. .. .. B1 B0
.. F0 F1 .. .. .. .. B1 B0 ..
.. .. F0 F1 .. .. B1 B0 .. ..
.. .. .. F0 F1 B1 B0 .. .. ..
)"},
      {"gpipe", 4, 3, R"(
F0 F1 F2 .. .. .. .. .. .. B2 B1 B0
.. F0 F1 F2 .. .. .. .. B2 B1 B0 ..
.. .. F0 F1 F2 .. .. B2 B1 B0 .. ..
.. .. .. F0 F1 F2 B2 B1 B0 .. .. ..
)"},
      {"gpipe", 4, 4, R"(
F0 F1 F2 F3 .. .. .. .. .. .. B3 B2 B1 B0
.. F0 F1 F2 F3 .. .. .. .. B3 B2 B1 B0 ..
.. .. F0 F1 F2 F3 .. .. B3 B2 B1 B0 .. ..
.. .. .. F0 F1 F2 F3 B3 B2 B1 B0 .. .. ..
)"},
      {"gpipe", 4, 5, R"(
F0 F1 F2 F3 F4 .. .. .. .. .. .. B4 B3 B2 B1 B0
.. F0 F1 F2 F3 F4 .. .. .. .. B4 B3 B2 B1 B0 ..
.. .. F0 F1 F2 F3 F4 .. .. B4 B3 B2 B1 B0 .. ..
.. .. .. F0 F1 F2 F3 F4 B4 B3 B2 B1 B0 .. .. ..
)"},
      {"1f1b", 1, 1, R"(
F0 B0
)"},
      {"1f1b", 1, 2, R"(
F0 B0 F1 B1
)"},
      {"1f1b", 1, 3, R"(
F0 B0 F1 B1 F2 B2
)"},
      {"1f1b", 1, 4, R"(
F0 B0 F1 B1 F2 B2 F3 B3
)"},
      {"1f1b", 1, 5, R"(
F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
)"},
      {"1f1b", 2, 1, R"(
F0 .. .. B0
.. F0 B0 ..
)"},
      {"1f1b", 2, 2, R"(
F0 F1 .. B0 .. B1
.. F0 B0 F1 B1 ..
)"},
      {"1f1b", 2, 3, R"(
F0 F1 .. B0 F2 B1 .. B2
.. F0 B0 F1 B1 F2 B2 ..
)"},
      {"1f1b", 2, 4, R"(
F0 F1 .. B0 F2 B1 F3 B2 .. B3
.. F0 B0 F1 B1 F2 B2 F3 B3 ..
)"},
      {"1f1b", 2, 5, R"(
F0 F1 .. B0 F2 B1 F3 B2 F4 B3 .. B4
.. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 ..
)"},
      {"1f1b", 3, 1, R"(
F0 .. .. .. .. B0
.. F0 .. .. B0 ..
.. .. F0 B0 .. ..
)"},
      {"1f1b", 3, 2, R"(
F0 F1 .. .. .. B0 .. B1
.. F0 F1 .. B0 .. B1 ..
.. .. F0 B0 F1 B1 .. ..
)"},
      {"1f1b", 3, 3, R"(
F0 F1 F2 .. .. B0 .. B1 .. B2
.. F0 F1 .. B0 F2 B1 .. B2 ..
.. .. F0 B0 F1 B1 F2 B2 .. ..
)"},
      {"1f1b", 3, 4, R"(
F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3
.. F0 F1 .. B0 F2 B1 F3 B2 .. B3 ..
.. .. F0 B0 F1 B1 F2 B2 F3 B3 .. ..
)"},
      {"1f1b", 3, 5, R"(
F0 F1 F2 .. .. B0 F3 B1 F4 B2 .. B3 .. B4
.. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 .. B4 ..
.. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 .. ..
)"},
      {"1f1b", 4, 1, R"(
F0 .. .. .. .. .. .. B0
.. F0 .. .. .. .. B0 ..
.. .. F0 .. .. B0 .. ..
.. .. .. F0 B0 .. .. ..
)"},
      {"1f1b", 4, 2, R"(
F0 F1 .. .. .. .. .. B0 .. B1
.. F0 F1 .. .. .. B0 .. B1 ..
.. .. F0 F1 .. B0 .. B1 .. ..
.. .. .. F0 B0 F1 B1 .. .. ..
)"},
      {"1f1b", 4, 3, R"(
F0 F1 F2 .. .. .. .. B0 .. B1 .. B2
.. F0 F1 F2 .. .. B0 .. B1 .. B2 ..
.. .. F0 F1 .. B0 F2 B1 .. B2 .. ..
.. .. .. F0 B0 F1 B1 F2 B2 .. .. ..
)"},
      {"1f1b", 4, 4, R"(
F0 F1 F2 F3 .. .. .. B0 .. B1 .. B2 .. B3
.. F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3 ..
.. .. F0 F1 .. B0 F2 B1 F3 B2 .. B3 .. ..
.. .. .. F0 B0 F1 B1 F2 B2 F3 B3 .. .. ..
)"},
      {"1f1b", 4, 5, R"(
F0 F1 F2 F3 .. .. .. B0 F4 B1 .. B2 .. B3 .. B4
.. F0 F1 F2 .. .. B0 F3 B1 F4 B2 .. B3 .. B4 ..
.. .. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 .. B4 .. ..
.. .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 .. .. ..
)"},
  };
  return pictures;
}

/// The lines of a picture, without the empty first one.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace stratagem::schedules
