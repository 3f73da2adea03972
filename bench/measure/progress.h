// Prints one line on the terminal with the progress of the measurement:
//
//   [ 7/33] pipeline split:12 round 2/3  step 1.59 s  ETA 3:40
//
// It is updated in place. If standard error is a file, a pipe or a dumb terminal, a line is written
// after each round and if a phase has lasted half a minute since the last one. A quiet one prints
// nothing but the notes that report trouble to the caller's own channel.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "bench/measure/observer.h"

namespace stratagem::bench {

/// The line "[ 7/33] name detail  step 1.59 s  ETA 3:40", cut to `width` columns; parts that are
/// empty or unknown are left out.
struct ProgressLine {
  std::size_t index = 0;
  std::size_t items = 0;
  std::string text;
  std::optional<double> step_ms = {};  // step of the item before
  std::optional<double> remaining_seconds = {};

  std::string render(std::size_t width) const;
};

class Progress : public Observer {
 public:
  enum class Style {
    line,    // one line, updated in place
    notes,   // few lines that stay: standard error is a file or a pipe
    silent,  // nothing at all
  };
  /// Returns the style for the present standard error.
  static Style style(bool quiet);

  explicit Progress(Style style, std::FILE* out = stderr);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void phase(const std::string& name, std::size_t items) override;
  void begin(const std::string& item, const std::string& detail) override;
  void end(std::optional<double> step_ms) override;
  void tick() override;
  void note(const std::string& line) override;
  /// Shows a line of the caller's instead of the usual one.
  void show(const ProgressLine& line);
  /// Removes the line: the next output begins at the left.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<double> remaining_seconds() const;
  void show();
  void write_round();
  void write_line(const ProgressLine& line);

  Style style_;
  std::FILE* out_;
  std::string phase_;
  ProgressLine line_;
  std::size_t finished_ = 0;
  double finished_seconds_ = 0;
  std::string detail_;  // detail of the last item: "round 2/3"
  Clock::time_point item_begin_;
  Clock::time_point last_line_;
  bool shown_ = false;
};

}  // namespace stratagem::bench
