// The finished launches of a measurement that has not ended: FILE.partial.
//
// JSON lines. The first names the rows and the rounds; each further one is a finished launch. It
// is appended to as launches finish, so that whatever ends the run, a signal or the power, what is
// finished stays, and --resume goes on from it. A last line that was cut off is left out. Lines
// that a full disk does not take are removed again and wait for the next write.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/proof/evidence.h"
#include "reports/record.h"
#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

/// What was asked for; a partial file is gone on from only when it agrees.
struct PartialPlan {
  std::vector<nlohmann::json> rows;  // resolved configurations
  nlohmann::json identity;           // of the build, the machine and the environment
};

struct FinishedLaunch {
  std::size_t row = 0;
  std::int64_t round = 0;
  std::vector<reports::Repetition> repetitions = {};
  std::vector<Evidence> evidence = {};  // [repetition], or empty
};

/// results.json -> results.json.partial
std::filesystem::path partial_path(const std::filesystem::path& out);

/// The launches in `path`, none where there is no file. Throws std::invalid_argument, saying what
/// differs, when the file belongs to another plan or cannot be understood.
std::vector<FinishedLaunch> read_partial(const std::filesystem::path& path,
                                         const PartialPlan& plan);

class PartialFile {
 public:
  /// Keeps other runs away from it while it lives. Throws std::invalid_argument when one is there,
  /// std::system_error when the file cannot be opened.
  explicit PartialFile(std::filesystem::path path);
  /// Leaves no file behind in which nothing stands.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// Begins anew with what is already `finished`. Throws std::system_error, as append and flush do:
  /// whole lines stay in the file then, and the others wait.
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
