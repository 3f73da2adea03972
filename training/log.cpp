#include "training/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace stratagem::training {
namespace {

using nlohmann::ordered_json;

/// JSON has no such numbers.
void spell_out(ordered_json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    value = fmt::format("{}", value.get<double>());
  }
  if (value.is_structured()) {
    for (ordered_json& part : value) spell_out(part);
  }
}

bool is_step(const ordered_json& line, std::int64_t step) {
  const auto event = line.find("event");
  const auto number = line.find("step");
  return event != line.end() && *event == "step" && number != line.end() && *number == step;
}

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

}  // namespace

LogWriter::LogWriter(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_);
}

LogWriter::~LogWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LogWriter::write(const ordered_json& line) {
  if (descriptor_ < 0) return;
  ordered_json written = line;
  spell_out(written);
  const std::string text = written.dump() + "\n";
  const ssize_t count = ::write(descriptor_, text.data(), text.size());
  if (count == static_cast<ssize_t>(text.size())) return;
  if (count >= 0) errno = ENOSPC;  // a part of it: the disk is full
  fail(path_);
}

std::string lines_until(const std::string& path, std::int64_t step) {
  std::string text;
  for (const ordered_json& line : LogReader(path).next()) {
    text += line.dump() + "\n";
    if (is_step(line, step)) return text;
  }
  return "";
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
