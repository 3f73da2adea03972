// The log of a training: JSON lines, each written whole, that a person, the progress line and the
// charts read while it goes on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stratagem::training {

/// Appends to a file; an empty path is no log. Throws std::system_error.
class LogWriter {
 public:
  explicit LogWriter(std::string path);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// In one write, so that a line is there whole or not at all. Numbers that are not finite are
  /// written as texts: "nan", "inf", "-inf".
  void write(const nlohmann::ordered_json& line);

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// The lines of a log up to the one that tells of this step, as text; empty where there is none.
std::string lines_until(const std::string& path, std::int64_t step);

/// The first line of a log. Null for an empty file and for a first line that is not a JSON object.
nlohmann::ordered_json first_line(const std::string& path);

/// Reads what has been appended to a log since it was last asked.
class LogReader {
 public:
  /// Begins with what follows the first `offset` bytes.
  explicit LogReader(std::string path, long offset = 0) : path_(std::move(path)), offset_(offset) {}

  /// Whole lines only. Throws std::runtime_error, with file and line, for one that is no JSON.
  std::vector<nlohmann::ordered_json> next();

 private:
  std::string path_;
  long offset_;
};

}  // namespace stratagem::training
