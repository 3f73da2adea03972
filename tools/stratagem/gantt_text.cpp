#include "tools/stratagem/gantt_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace stratagem::tools {
namespace {

using schedules::ActionKind;

constexpr std::size_t most_devices = 40;

/// The marks of a cell, in the order of the legend.
constexpr std::string_view fills = "=#+o~";

/// The fill of copies and transfers.
constexpr std::size_t copies = fills.size() - 1;

std::size_t fill_of(ActionKind kind) {
  if (kind == ActionKind::forward) return 0;
  if (kind == ActionKind::recompute) return 2;
  if (kind == ActionKind::optimizer) return 3;
  return schedules::is_pass(kind) ? 1 : copies;
}

/// Returns whether it overlaps all other work of the device.
bool is_concurrent(const schedules::TimelineEntry& entry) {
  return schedules::is_in_flight(entry.action.kind);
}

/// One character's time.
class Cell {
 public:
  void add(std::size_t fill, double begin, double end) {
    filled_[fill] += end - begin;
    first_[fill] = std::min(first_[fill], begin);
  }

  /// Returns the mark of what fills most of the time from 0 to 1; of equals, what begins first. A
  /// computation hides the copies that run beside it.
  char mark() const {
    constexpr double rounding = 1e-6;
    std::array<double, fills.size()> shown = filled_;
    const double computing = std::accumulate(shown.begin(), shown.begin() + copies, 0.0);
    shown[copies] = std::clamp(1 - computing, 0.0, shown[copies]);
    double most = 1 - computing - shown[copies];
    const double earliest = *std::ranges::min_element(first_);
    double begin = earliest > rounding ? 0 : 1;  // begin of the idle time
    char mark = most > rounding ? '.' : ' ';
    for (std::size_t fill = 0; fill < fills.size(); ++fill) {
      const double more = shown[fill] - most;
      if (more < -rounding || (more <= rounding && first_[fill] >= begin)) continue;
      most = shown[fill];
      begin = first_[fill];
      mark = fills[fill];
    }
    return mark;
  }

 private:
  std::array<double, fills.size()> filled_{};
  std::array<double, fills.size()> first_{1, 1, 1, 1, 1};
};

class DeviceLine {
 public:
  DeviceLine(double step_ms, std::size_t columns)
      : scale_(step_ms > 0 ? static_cast<double>(columns) / step_ms : 0), cells_(columns) {}

  void draw(const schedules::TimelineEntry& entry) {
    const double last = static_cast<double>(cells_.size());
    const double begin = std::clamp(entry.start_ms * scale_, 0.0, last);
    const double end = std::clamp(entry.end_ms * scale_, begin, last);
    const std::size_t fill = fill_of(entry.action.kind);
    used_ = true;
    for (double at = std::floor(begin); at < end; ++at) {
      cells_[static_cast<std::size_t>(at)].add(fill, std::max(begin - at, 0.0),
                                               std::min(end - at, 1.0));
    }
    if (fill > 1) return;
    const std::string label = fmt::format("{}{}", fill == 0 ? 'F' : 'B', entry.action.micro_batch);
    const auto first = static_cast<std::size_t>(std::lround(begin));
    if (first + label.size() <= static_cast<std::size_t>(std::lround(end))) {
      labels_.emplace_back(first, label);
    }
  }

  bool is_used() const { return used_; }

  std::string text() const {
    std::string text;
    for (const Cell& cell : cells_) text += cell.mark();
    for (const auto& [begin, label] : labels_) text.replace(begin, label.size(), label);
    return text;
  }

 private:
  double scale_;
  std::vector<Cell> cells_;
  std::vector<std::pair<std::size_t, std::string>> labels_;
  bool used_ = false;
};

/// Returns all devices, or `most_devices` of them, spread evenly from the first to the last.
std::vector<std::size_t> drawn_devices(std::size_t devices) {
  std::vector<std::size_t> drawn(std::min(devices, most_devices));
  for (std::size_t index = 0; index < drawn.size(); ++index) {
    drawn[index] = devices <= most_devices ? index : index * (devices - 1) / (most_devices - 1);
  }
  return drawn;
}

}  // namespace

std::string gantt_text(const schedules::Timeline& timeline, int devices, int width) {
  constexpr int least_columns = 20;
  const auto drawn = drawn_devices(static_cast<std::size_t>(devices));
  const std::size_t digits = std::to_string(devices - 1).size();
  const int head_columns = static_cast<int>(std::string_view("device  |").size() + digits);
  const DeviceLine empty(timeline.step_ms, static_cast<std::size_t>(
                                               std::max(least_columns, width - head_columns - 1)));
  struct Lines {
    DeviceLine list;
    DeviceLine in_flight;
  };
  std::map<int, Lines> lines;
  for (const std::size_t device : drawn) lines.emplace(device, Lines{empty, empty});
  for (const schedules::TimelineEntry& entry : timeline.entries) {
    const auto found = lines.find(entry.device);
    if (found == lines.end()) continue;
    (is_concurrent(entry) ? found->second.in_flight : found->second.list).draw(entry);
  }
  std::string text;
  for (const auto& [device, of_device] : lines) {
    text += fmt::format("device {:>{}} |{}|\n", device, digits, of_device.list.text());
    if (!of_device.in_flight.is_used()) continue;
    text += fmt::format("{:>{}}{}|\n", "link |", head_columns, of_device.in_flight.text());
  }
  text +=
      "= forward  # backward  + recompute  o optimizer  ~ copy or transfer  . idle; F0: "
      "micro-batch 0\n";
  if (drawn.size() < static_cast<std::size_t>(devices)) {
    text += fmt::format("{} of {} devices, spread evenly\n", drawn.size(), devices);
  }
  return text;
}

}  // namespace stratagem::tools
