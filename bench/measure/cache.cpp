#include "bench/measure/cache.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "bench/machine/machine.h"
#include "reports/atomic_file.h"
#include "strategies/runtime/content_hash.h"

namespace stratagem::bench {

using nlohmann::json;

namespace {

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::filesystem::path default_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "stratagem";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache/stratagem";
  return temporary_folder() / "stratagem-cache";
}

Cache::Cache(std::filesystem::path folder) : folder_(std::move(folder)) {}

std::filesystem::path Cache::entry(const std::string& kind, const json& question) const {
  return folder_ / fmt::format("{}-{:016x}.json", kind, runtime::content_hash(question.dump()));
}

/// Returns null if there is none.
json Cache::stored(const std::string& kind, const json& question) const {
  std::ifstream file(entry(kind, question));
  if (!file) return {};
  json stored = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!stored.is_object() || !stored.contains("answer")) return {};
  return stored.value("question", json()) == question ? stored : json();
}

std::optional<json> Cache::find(const std::string& kind, const json& question) const {
  json found = stored(kind, question);
  return found.is_null() ? std::nullopt : std::optional(std::move(found["answer"]));
}

std::optional<RecentAnswer> Cache::find_recent(const std::string& kind, const json& question,
                                               double longest_age_s) const {
  json found = stored(kind, question);
  if (found.is_null() || !found["time"].is_number()) return std::nullopt;
  const double age_s = seconds_since_epoch() - found["time"].get<double>();
  if (age_s < 0 || age_s > longest_age_s) return std::nullopt;
  return RecentAnswer{std::move(found["answer"]), age_s};
}

bool Cache::store(const std::string& kind, const json& question, const json& answer) const {
  try {
    std::filesystem::create_directories(folder_);
    const json stored{{"question", question}, {"time", seconds_since_epoch()}, {"answer", answer}};
    reports::write_file_atomically(entry(kind, question).string(), stored.dump(1) + "\n");
    return true;
  } catch (const std::exception& error) {
    if (failure_.empty()) failure_ = error.what();
    return false;
  }
}

}  // namespace stratagem::bench
