#include "tools/stratagem/gantt_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stratagem::tools {
namespace {

using schedules::ActionKind;

char fill_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return '=';
    case ActionKind::backward:
      return '#';
    case ActionKind::optimizer:
      return 'o';
    default:
      break;
  }
  return '~';
}

bool is_computation(const schedules::Action& action) { return !schedules::moves_data(action.kind); }

/// What overlaps everything that the device does.
bool is_concurrent(const schedules::TimelineEntry& entry) {
  return schedules::is_in_flight(entry.action.kind);
}

class DeviceLine {
 public:
  DeviceLine(double step_ms, std::size_t columns) : scale_(0), cells_(columns, '.') {
    if (step_ms > 0) scale_ = static_cast<double>(columns) / step_ms;
  }

  void draw(const schedules::TimelineEntry& entry) {
    const std::size_t begin = column(entry.start_ms);
    const std::size_t end = column(entry.end_ms);
    if (end <= begin) return;
    std::fill(cells_.begin() + static_cast<std::ptrdiff_t>(begin),
              cells_.begin() + static_cast<std::ptrdiff_t>(end), fill_of(entry.action.kind));
    const std::string label = fmt::format(
        "{}{}", entry.action.kind == ActionKind::forward ? 'F' : 'B', entry.action.micro_batch);
    if (is_computation(entry.action) && entry.action.kind != ActionKind::optimizer &&
        label.size() <= end - begin) {
      cells_.replace(begin, label.size(), label);
    }
  }

  const std::string& text() const { return cells_; }

 private:
  std::size_t column(double ms) const {
    return std::min(cells_.size(),
                    static_cast<std::size_t>(std::lround(std::max(0.0, ms) * scale_)));
  }

  double scale_;
  std::string cells_;
};

}  // namespace

std::string gantt_text(const schedules::Timeline& timeline, int devices, int width) {
  constexpr int least_columns = 20;
  std::string text;
  for (int device = 0; device < devices; ++device) {
    const std::string head = fmt::format("device {} |", device);
    const std::string link = fmt::format("{:>{}}", "link |", head.size());
    const int columns = std::max(least_columns, width - static_cast<int>(head.size()) - 1);
    DeviceLine line(timeline.step_ms, static_cast<std::size_t>(columns));
    DeviceLine concurrent(timeline.step_ms, static_cast<std::size_t>(columns));
    const auto entries = timeline.of_device(device);
    for (const bool computation : {false, true}) {
      for (const auto& entry : entries) {
        if (is_concurrent(entry) || is_computation(entry.action) != computation) continue;
        line.draw(entry);
      }
    }
    text += head + line.text() + "|\n";
    if (std::ranges::none_of(entries, is_concurrent)) continue;
    for (const auto& entry : entries) {
      if (is_concurrent(entry)) concurrent.draw(entry);
    }
    text += link + concurrent.text() + "|\n";
  }
  return text +
         "= forward  # backward  o optimizer  ~ copy or transfer  . idle; F0: micro-batch 0\n";
}

}  // namespace stratagem::tools
