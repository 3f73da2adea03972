#include "training/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace stratagem::training {
namespace {

using nlohmann::ordered_json;

/// Replaces the numbers that JSON lacks with strings.
void spell_out(ordered_json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    value = fmt::format("{}", value.get<double>());
  }
  if (value.is_structured()) {
    for (ordered_json& part : value) spell_out(part);
  }
}

/// Returns the step of the line, or nothing for a line of another event.
std::optional<std::int64_t> step_of(const ordered_json& line) {
  const auto event = line.find("event");
  const auto number = line.find("step");
  if (event == line.end() || *event != "step" || number == line.end()) return std::nullopt;
  if (!number->is_number_integer()) return std::nullopt;
  return number->get<std::int64_t>();
}

[[noreturn]] void fail(const std::string& path, int error) {
  throw std::system_error(error, std::generic_category(), "cannot write " + path);
}

}  // namespace

LogWriter::LogWriter(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, errno);
}

LogWriter::~LogWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LogWriter::write(const ordered_json& line) {
  if (descriptor_ < 0) return;
  ordered_json written = line;
  spell_out(written);
  unwritten_ += written.dump() + "\n";
  flush();
}

/// Writes the lines; only whole lines stay in the file.
void LogWriter::flush() {
  error_ = 0;
  std::size_t written = 0;
  while (written < unwritten_.size()) {
    const ssize_t count =
        ::write(descriptor_, unwritten_.data() + written, unwritten_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      error_ = count < 0 ? errno : ENOSPC;
      break;
    }
    written += static_cast<std::size_t>(count);
  }
  const std::size_t last_end =
      written == 0 ? std::string::npos : unwritten_.rfind('\n', written - 1);
  const std::size_t whole = last_end == std::string::npos ? 0 : last_end + 1;
  const std::size_t part = written - whole;
  unwritten_.erase(0, whole);
  if (part == 0) return;
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  // The next write continues a part that cannot be cut off, for example in a pipe.
  if (end < 0 || ::ftruncate(descriptor_, end - static_cast<off_t>(part)) != 0) {
    unwritten_.erase(0, part);
  }
}

void LogWriter::sync() {
  if (descriptor_ < 0) return;
  flush();
  // A pipe and a device have no disk and return EINVAL.
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL && error_ == 0) error_ = errno;
}

void LogWriter::require_written() const {
  if (error_ != 0) fail(path_, error_);
}

LogUntil lines_until(const std::string& path, std::int64_t step) {
  LogUntil found;
  for (const ordered_json& line : LogReader(path).next()) {
    const std::optional<std::int64_t> at = step_of(line);
    if (at && *at > step) break;
    found.text += line.dump() + "\n";
    if (at) found.last_step = *at;
    if (at == step) break;
  }
  return found;
}

std::vector<ordered_json> lines_of(const std::string& text, const std::string& where) {
  std::vector<ordered_json> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    lines.push_back(ordered_json::parse(line, nullptr, /*allow_exceptions=*/false));
    if (lines.back().is_discarded()) {
      throw std::runtime_error(fmt::format("{}: \"{}\" is not JSON", where, line));
    }
  }
  return lines;
}

ordered_json first_line(const std::string& path) {
  constexpr std::size_t longest = std::size_t{64} << 10U;
  std::ifstream file(path, std::ios::binary);
  std::string line(longest, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  line.resize(std::min(line.find('\n'), line.size()));
  ordered_json first = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  return first.is_object() ? first : ordered_json();
}

std::vector<ordered_json> LogReader::next() {
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  std::vector<ordered_json> lines;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    offset_ += static_cast<long>(line.size()) + 1;
    lines.push_back(ordered_json::parse(line, nullptr, /*allow_exceptions=*/false));
    if (lines.back().is_object()) continue;
    throw std::runtime_error(
        fmt::format("{}: the line that ends at byte {} is not a JSON object", path_, offset_));
  }
  return lines;
}

}  // namespace stratagem::training
