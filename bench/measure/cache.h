// Keeps results that are not computed again: verification and calibration, by row and build.
//
// Each entry is a small JSON file, written under another name and renamed. It repeats its question,
// so a collision, like a damaged file, is a miss and never a wrong answer.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace stratagem::bench {

/// Returns ${XDG_CACHE_HOME:-~/.cache}/stratagem, or a temporary folder if there is no home.
std::filesystem::path default_cache_folder();

/// An answer and its age.
struct RecentAnswer {
  nlohmann::json answer;
  double age_s = 0;
};

class Cache {
 public:
  explicit Cache(std::filesystem::path folder = default_cache_folder());

  /// Returns the answer stored for `question` under `kind`.
  std::optional<nlohmann::json> find(const std::string& kind, const nlohmann::json& question) const;

  /// Returns the answer unless it is older than that.
  std::optional<RecentAnswer> find_recent(const std::string& kind, const nlohmann::json& question,
                                          double longest_age_s) const;

  /// Keeps an answer. Returns false if the cache cannot be written, which does not stop the run.
  bool store(const std::string& kind, const nlohmann::json& question,
             const nlohmann::json& answer) const;

  /// Returns why the first answer was not kept, in one line; empty if all were.
  const std::string& failure() const { return failure_; }

 private:
  nlohmann::json stored(const std::string& kind, const nlohmann::json& question) const;
  std::filesystem::path entry(const std::string& kind, const nlohmann::json& question) const;

  std::filesystem::path folder_;
  mutable std::string failure_;  // not part of the cache's content
};

}  // namespace stratagem::bench
