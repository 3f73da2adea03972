// The log of a training: JSON lines, each written whole, that the user, the progress line and the
// charts read while the training runs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stratagem::training {

/// Appends lines to a file, or writes nothing if the path is empty.
class LogWriter {
 public:
  /// Throws std::system_error.
  explicit LogWriter(std::string path);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Writes a line in one call, so that it appears whole or not at all; a line that does not fit
  /// waits for the next write. Writes numbers that are not finite as strings: "nan", "inf", "-inf".
  void write(const nlohmann::ordered_json& line);
  void sync();

  /// Returns the waiting lines as text, or an empty string if there are none.
  const std::string& unwritten() const { return unwritten_; }
  /// Throws std::system_error if a line waits or the last write or sync failed.
  void require_written() const;

 private:
  void flush();

  std::string path_;
  int descriptor_ = -1;
  std::string unwritten_;
  int error_ = 0;  // errno of the last write or sync; 0: none
};

/// Returns the text's lines. Throws std::runtime_error, beginning with `where`, for one that is not
/// JSON.
std::vector<nlohmann::ordered_json> lines_of(const std::string& text, const std::string& where);

struct LogUntil {
  std::string text = {};       // whole lines
  std::int64_t last_step = 0;  // the last step among them; 0: none
};
/// Returns a log up to the line of `step`, or all of a log that ends before it.
LogUntil lines_until(const std::string& path, std::int64_t step);

/// Returns a log's first line, or null if the file is empty or the line is not a JSON object.
nlohmann::ordered_json first_line(const std::string& path);

/// Reads what was appended to a log since the last call.
class LogReader {
 public:
  /// Skips the first `offset` bytes.
  explicit LogReader(std::string path, long offset = 0) : path_(std::move(path)), offset_(offset) {}

  /// Returns whole lines. Throws std::runtime_error for one that is not a JSON object.
  std::vector<nlohmann::ordered_json> next();

 private:
  std::string path_;
  long offset_;
};

}  // namespace stratagem::training
