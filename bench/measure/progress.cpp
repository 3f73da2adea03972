#include "bench/measure/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/machine/terminal.h"
#include "reports/text_table.h"
#include "strategies/runtime/print_line.h"

namespace stratagem::bench {
namespace {

constexpr auto longest_silence = std::chrono::seconds(30);

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string step_text(double milliseconds) {
  if (milliseconds >= 1000) return fmt::format("{:.2f} s", milliseconds / 1000);
  return reports::significant(milliseconds) + " ms";
}

}  // namespace

std::string ProgressLine::render(std::size_t width) const {
  const std::string total = std::to_string(items);
  const std::string head = fmt::format("[{:>{}}/{}] ", index, total.size(), total);
  std::string tail;
  if (step_ms) tail += "  step " + step_text(*step_ms);
  if (remaining_seconds) tail += "  ETA " + duration_text(*remaining_seconds);
  const std::size_t room = width - std::min(width, head.size() + tail.size());
  return (head + text.substr(0, room) + tail).substr(0, width);
}

Progress::Style Progress::style(bool quiet) {
  if (quiet) return Style::silent;
  return can_replace_lines(stderr) ? Style::line : Style::notes;
}

Progress::Progress(Style style, std::FILE* out)
    : style_(style), out_(out), item_begin_(Clock::now()), last_line_(item_begin_) {}

Progress::~Progress() { finish(); }

void Progress::phase(const std::string& name, std::size_t items) {
  phase_ = name;
  line_ = {.index = 0, .items = items, .text = ""};
  finished_ = 0;
  finished_seconds_ = 0;
  detail_.clear();
}

void Progress::begin(const std::string& item, const std::string& detail) {
  if (!detail_.empty() && detail != detail_) write_round();
  detail_ = detail;
  ++line_.index;
  line_.text = phase_ + " " + item + (detail.empty() ? "" : " " + detail);
  item_begin_ = Clock::now();
  show();
}

void Progress::end(std::optional<double> step_ms) {
  ++finished_;
  finished_seconds_ += std::chrono::duration<double>(Clock::now() - item_begin_).count();
  if (step_ms) line_.step_ms = step_ms;
  show();
}

void Progress::tick() { show(); }

void Progress::note(const std::string& line) {
  if (style_ == Style::silent) return;
  finish();
  runtime::print_line(out_, line);
}

// Assumes that an item left takes as long as a finished one; subtracts the running item's age.
std::optional<double> Progress::remaining_seconds() const {
  if (finished_ == 0) return std::nullopt;
  const double each = finished_seconds_ / static_cast<double>(finished_);
  const double age = std::chrono::duration<double>(Clock::now() - item_begin_).count();
  const double left = each * static_cast<double>(line_.items - std::min(line_.items, finished_));
  return std::max(0.0, left - (line_.index > finished_ ? std::min(age, each) : 0.0));
}

void Progress::show() {
  line_.remaining_seconds = remaining_seconds();
  show(line_);
  if (style_ == Style::notes && Clock::now() - last_line_ > longest_silence) write_line(line_);
}

/// Writes the round that ended before the item that begins.
void Progress::write_round() {
  if (style_ != Style::notes) return;
  ProgressLine line{.index = finished_, .items = line_.items, .text = phase_ + " " + detail_};
  line.remaining_seconds = remaining_seconds();
  write_line(line);
}

void Progress::write_line(const ProgressLine& line) {
  constexpr std::size_t width = 200;
  note(line.render(width));
  last_line_ = Clock::now();
}

void Progress::show(const ProgressLine& line) {
  if (style_ != Style::line) return;
  // One column is left free: a full line would scroll on some terminals.
  const int width = terminal_width(out_).value_or(80) - 1;
  std::fputs(fmt::format("\r{}\x1b[K", line.render(static_cast<std::size_t>(width))).c_str(), out_);
  std::fflush(out_);
  shown_ = true;
}

void Progress::finish() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  shown_ = false;
}

}  // namespace stratagem::bench
