// The folder of a training's checkpoints: step-00000120.pt and its like.
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

/// What the log says of it.
nlohmann::ordered_json log_line(const Entry& entry);

class Folder {
 public:
  /// Makes it, takes it for this process and removes what an ended run left half-written. Throws
  /// std::invalid_argument when another run has it, and std::system_error.
  explicit Folder(std::filesystem::path path);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Ascending.
  std::vector<Entry> entries() const { return entries_in(path_); }

  /// By the file's name; empty for another file.
  static std::optional<std::int64_t> step_of(const std::filesystem::path& path);
  static std::filesystem::path path_of(const std::filesystem::path& folder, std::int64_t step);
  /// The best evaluation's: beside the others, and never among those that are thinned out.
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
