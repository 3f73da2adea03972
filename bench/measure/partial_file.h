// FILE.partial keeps the finished launches of a measurement that has not ended.
//
// It consists of JSON lines. The first names the rows and the rounds; each further one is a
// finished launch. Launches are appended as they finish, so that they survive a signal or a power
// failure, and --resume continues from them. A last line that was cut off is left out. Lines that a
// full disk does not take are removed again and wait for the next write.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/proof/evidence.h"
#include "reports/record.h"
#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

/// The plan of a measurement; only one that agrees can continue from a partial file.
struct PartialPlan {
  std::vector<nlohmann::json> rows;  // resolved configurations
  nlohmann::json identity;           // identity of build, machine and environment
};

struct FinishedLaunch {
  std::size_t row = 0;
  std::int64_t round = 0;
  std::vector<reports::Repetition> repetitions = {};
  std::vector<Evidence> evidence = {};  // [repetition], or empty
};

/// Returns results.json.partial for results.json.
std::filesystem::path partial_path(const std::filesystem::path& out);

/// Returns the launches in `path`, none if there is no file. Throws std::invalid_argument with the
/// difference if the file belongs to another plan or cannot be understood.
std::vector<FinishedLaunch> read_partial(const std::filesystem::path& path,
                                         const PartialPlan& plan);

class PartialFile {
 public:
  /// Keeps other runs away from the file while it lives. Throws std::invalid_argument if another
  /// run has it, and std::system_error if it cannot be opened.
  explicit PartialFile(std::filesystem::path path);
  /// Removes an empty file.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// Begins anew with what is already `finished`. Throws std::system_error, like append() and
  /// flush(): whole lines stay in the file then, and the others wait.
  void begin(const PartialPlan& plan, const std::vector<FinishedLaunch>& finished);
  /// Adds one launch and hands it to the disk, with those that wait.
  void append(const FinishedLaunch& launch);
  /// Writes the lines that wait.
  void flush();
  /// Returns true if no line waits.
  bool is_whole() const { return waiting_.empty(); }

  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::filesystem::path path_;
  runtime::UniqueFd file_;
  std::string waiting_;  // whole lines
};

}  // namespace stratagem::bench
