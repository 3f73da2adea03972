// Results that need not be found again: verification and calibration, by configuration and build.
//
// One small JSON file an entry, written aside and renamed. The file repeats what it is the answer
// to, so a collision, like a damaged file, is a miss and never a wrong answer.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace stratagem::bench {

/// ${XDG_CACHE_HOME:-~/.cache}/stratagem, or a folder for temporary files where there is no home.
std::filesystem::path default_cache_folder();

/// An answer and how long ago it was kept.
struct RecentAnswer {
  nlohmann::json answer;
  double age_s = 0;
};

class Cache {
 public:
  explicit Cache(std::filesystem::path folder = default_cache_folder());

  /// The answer stored for `question` under `kind`.
  std::optional<nlohmann::json> find(const std::string& kind, const nlohmann::json& question) const;

  /// The same, unless it is older than that.
  std::optional<RecentAnswer> find_recent(const std::string& kind, const nlohmann::json& question,
                                          double longest_age_s) const;

  /// Keeps an answer. A cache that cannot be written is no reason to stop: false.
  bool store(const std::string& kind, const nlohmann::json& question,
             const nlohmann::json& answer) const;

  /// Why the first answer was not kept, in one line; empty: all were.
  const std::string& failure() const { return failure_; }

 private:
  nlohmann::json stored(const std::string& kind, const nlohmann::json& question) const;
  std::filesystem::path entry(const std::string& kind, const nlohmann::json& question) const;

  std::filesystem::path folder_;
  mutable std::string failure_;  // no part of what the cache holds
};

}  // namespace stratagem::bench
