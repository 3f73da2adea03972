// The log of a training: JSON lines, each written whole, that a person, the progress line and the
// charts read while it goes on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stratagem::training {

/// Appends lines to a file. With an empty path it writes nothing.
class LogWriter {
 public:
  /// Throws std::system_error.
  explicit LogWriter(std::string path);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// In one write, so that a line is there whole or not at all; a line that does not fit waits for
  /// the next write. Numbers that are not finite are written as texts: "nan", "inf", "-inf".
  void write(const nlohmann::ordered_json& line);
  /// Flushes the file to the disk.
  void sync();

  /// The lines that wait, as text; empty: none.
  const std::string& unwritten() const { return unwritten_; }
  /// Throws std::system_error when a line waits, or the file could not be handed to the disk.
  void require_written() const;

 private:
  void flush();

  std::string path_;
  int descriptor_ = -1;
  std::string unwritten_;
  int error_ = 0;  // of the last write or sync; 0: none
};

/// The text's lines. Throws std::runtime_error, which begins with `where`, for one that is not
/// JSON.
std::vector<nlohmann::ordered_json> lines_of(const std::string& text, const std::string& where);

struct LogUntil {
  std::string text = {};       // whole lines
  std::int64_t last_step = 0;  // the last step among them; 0: none
};
/// A log up to the line of this step; all of a log that ends before it.
LogUntil lines_until(const std::string& path, std::int64_t step);

/// The first line of a log. Null for an empty file and for a first line that is not a JSON object.
nlohmann::ordered_json first_line(const std::string& path);

/// Reads what has been appended to a log since it was last asked.
class LogReader {
 public:
  /// Begins with what follows the first `offset` bytes.
  explicit LogReader(std::string path, long offset = 0) : path_(std::move(path)), offset_(offset) {}

  /// Whole lines only. Throws std::runtime_error, with file and line, for one that is not JSON.
  std::vector<nlohmann::ordered_json> next();

 private:
  std::string path_;
  long offset_;
};

}  // namespace stratagem::training
