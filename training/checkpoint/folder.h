// The folder of a training's checkpoints: step-00000120.pt and so on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace stratagem::checkpoint {

struct Entry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// Returns the log's line about the checkpoint.
nlohmann::ordered_json log_line(const Entry& entry);

class Folder {
 public:
  /// Creates and locks the folder and removes the partial files of an ended run. Throws
  /// std::invalid_argument if another run holds the lock, and std::system_error.
  explicit Folder(std::filesystem::path path);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Returns the checkpoints in ascending order of steps.
  std::vector<Entry> entries() const { return entries_in(path_); }

  /// Returns the step in a file's name, or nothing if the file is not a checkpoint.
  static std::optional<std::int64_t> step_of(const std::filesystem::path& path);
  static std::filesystem::path path_of(const std::filesystem::path& folder, std::int64_t step);
  /// Returns the path of the best evaluation's checkpoint, which thin_out() never removes.
  static std::filesystem::path best_of(const std::filesystem::path& folder);
  static std::vector<Entry> entries_in(const std::filesystem::path& folder);
  /// Gives the folder to a training that continues from the checkpoint `from`. Checkpoints of later
  /// steps, and all of them if `from` lies in another folder, belong to another course of training
  /// and move into a subfolder, `abandoned-1` or the next number. Returns that subfolder, or an
  /// empty path if nothing had to move. Throws std::system_error.
  static std::filesystem::path set_aside(const std::filesystem::path& folder, const Entry& from);
  /// Removes all but the last `keep`; 0 keeps all.
  static void thin_out(const std::filesystem::path& folder, std::size_t keep);

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace stratagem::checkpoint
