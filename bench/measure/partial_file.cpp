#include "bench/measure/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "reports/json_fields.h"
#include "reports/record_json.h"
#include "reports/write_all.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

constexpr const char* schema = "stratagem-partial/3";
constexpr std::string_view earlier_schemas[] = {"stratagem-partial/1", "stratagem-partial/2"};

std::string header_line(const PartialPlan& plan) {
  return json{{"schema", schema}, {"identity", plan.identity}, {"rows", plan.rows}}.dump() + "\n";
}

std::string launch_line(const FinishedLaunch& launch) {
  json line{{"row", launch.row}, {"round", launch.round}, {"repetitions", json::array()}};
  for (const reports::Repetition& repetition : launch.repetitions) {
    line["repetitions"].push_back(json(reports::to_json(repetition)));
  }
  line["evidence"] = json(reports::json_fields::json_of(launch.evidence));
  return line.dump() + "\n";
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw std::invalid_argument(
      fmt::format("--resume: {}: {}; run without --resume to start over", path.string(), reason));
}

/// Returns null if it is absent, or the value is not an object.
json member(const json& value, const std::string& key) {
  const json* found =
      value.is_object() ? reports::json_fields::member(value, key.c_str()) : nullptr;
  return found == nullptr ? json() : *found;
}

/// Replaces bytes that are not UTF-8.
std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void require_same_plan(const std::filesystem::path& path, const json& header,
                       const PartialPlan& plan) {
  const json found_schema = member(header, "schema");
  if (std::ranges::find(earlier_schemas, found_schema) != std::end(earlier_schemas)) {
    refuse(path, "an earlier version of stratagem wrote it");
  }
  if (found_schema != schema) {
    refuse(path, fmt::format("it is not a file of unfinished results ({})", schema));
  }
  const json rows = member(header, "rows");
  if (!rows.is_array() || rows.size() != plan.rows.size()) {
    refuse(path, fmt::format("it has {} rows, but this command has {}",
                             rows.is_array() ? rows.size() : 0, plan.rows.size()));
  }
  for (std::size_t index = 0; index < plan.rows.size(); ++index) {
    for (const auto& [key, value] : plan.rows[index].items()) {
      const json found = member(rows[index], key);
      if (found == value) continue;
      refuse(path, fmt::format("row {} has {} {} in the file but {} in this command", index + 1,
                               key, text_of(found), text_of(value)));
    }
  }
  const json identity = member(header, "identity");
  if (member(identity, "build") != member(plan.identity, "build")) {
    refuse(path, "it was measured with another build of the executable");
  }
  for (const auto& [key, value] : plan.identity.items()) {
    if (const json found = member(identity, key); found != value) {
      refuse(path, fmt::format("its launches have {} {}, but this run has {}", key, text_of(found),
                               text_of(value)));
    }
  }
}

/// Reads a line after the first.
FinishedLaunch launch_of(const std::filesystem::path& path, const json& entry,
                         const PartialPlan& plan) {
  const json row = member(entry, "row");
  const json round = member(entry, "round");
  const json repetitions = member(entry, "repetitions");
  const bool is_launch = row.is_number_integer() && repetitions.is_array() &&
                         (round.is_null() || round.is_number_integer());
  if (!is_launch) refuse(path, "a line in it is not a finished launch");
  if (row < 0 || row >= plan.rows.size()) {
    refuse(path, "a line in it has an unknown row");
  }
  FinishedLaunch launch{.row = row.get<std::size_t>(),
                        .round = round.is_null() ? 0 : round.get<std::int64_t>()};
  if (launch.round < 0) refuse(path, "a line in it has an invalid round");
  try {
    for (const json& repetition : repetitions) {
      launch.repetitions.push_back(reports::repetition_from_json(repetition, "repetition"));
    }
    launch.evidence =
        reports::json_fields::read_as<std::vector<Evidence>>(member(entry, "evidence"), "evidence");
  } catch (const std::invalid_argument& error) {
    refuse(path, error.what());
  }
  return launch;
}

}  // namespace

std::filesystem::path partial_path(const std::filesystem::path& out) {
  return out.string() + ".partial";
}

std::vector<FinishedLaunch> read_partial(const std::filesystem::path& path,
                                         const PartialPlan& plan) {
  std::ifstream file(path);
  std::vector<FinishedLaunch> finished;
  std::string line;
  if (!file || !std::getline(file, line)) return finished;
  require_same_plan(path, json::parse(line, nullptr, false), plan);
  while (std::getline(file, line)) {
    const json entry = json::parse(line, nullptr, false);
    if (entry.is_discarded() && file.peek() == std::char_traits<char>::eof()) break;
    finished.push_back(launch_of(path, entry, plan));
  }
  return finished;
}

// The lock is on the file and not on its name: another run may have removed it meanwhile. A device
// is not locked, because it keeps nothing of either run.
PartialFile::PartialFile(std::filesystem::path path) : path_(std::move(path)) {
  struct stat named {};
  struct stat opened {};
  do {
    file_ = runtime::UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file_) fail("open", errno);
    ::fstat(file_.get(), &opened);
    if (S_ISREG(opened.st_mode) && ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      throw std::invalid_argument(fmt::format(
          "{}: in use by another run; choose another --out, or wait for its end", path_.string()));
    }
  } while (::stat(path_.c_str(), &named) != 0 || named.st_ino != opened.st_ino);
}

PartialFile::~PartialFile() {
  std::error_code absent;
  if (std::filesystem::file_size(path_, absent) == 0) std::filesystem::remove(path_, absent);
}

// Overwrites the same bytes, up to a line that was cut off.
void PartialFile::begin(const PartialPlan& plan, const std::vector<FinishedLaunch>& finished) {
  waiting_ = header_line(plan);
  for (const FinishedLaunch& launch : finished) waiting_ += launch_line(launch);
  flush();
}

void PartialFile::append(const FinishedLaunch& launch) {
  waiting_ += launch_line(launch);
  flush();
}

void PartialFile::flush() {
  if (waiting_.empty()) return;
  struct stat before {};
  ::fstat(file_.get(), &before);
  const off_t position = ::lseek(file_.get(), 0, SEEK_CUR);
  const auto end = position + static_cast<off_t>(waiting_.size());
  int error = reports::write_all(file_.get(), waiting_);
  if (error == 0 && ::ftruncate(file_.get(), end) != 0) error = errno;
  if (error == 0 && ::fdatasync(file_.get()) != 0) error = errno;
  if (error == 0) return waiting_.clear();
  ::lseek(file_.get(), position, SEEK_SET);
  const bool is_cut = ::ftruncate(file_.get(), before.st_size) == 0;
  if (!is_cut && errno != EINVAL) error = errno;  // EINVAL: a device, which keeps nothing
  fail("write", error);
}

void PartialFile::fail(const char* what, int error) const {
  throw std::system_error(error, std::generic_category(),
                          fmt::format("cannot {} {}", what, path_.string()));
}

}  // namespace stratagem::bench
