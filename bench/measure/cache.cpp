#include "bench/measure/cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "reports/atomic_file.h"
#include "strategies/runtime/content_hash.h"

namespace stratagem::bench {

using nlohmann::json;

std::filesystem::path default_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "stratagem";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache/stratagem";
  return std::filesystem::temp_directory_path() / "stratagem-cache";
}

Cache::Cache(std::filesystem::path folder) : folder_(std::move(folder)) {}

std::filesystem::path Cache::entry(const std::string& kind, const json& question) const {
  return folder_ / fmt::format("{}-{:016x}.json", kind, runtime::content_hash(question.dump()));
}

std::optional<json> Cache::find(const std::string& kind, const json& question) const {
  std::ifstream file(entry(kind, question));
  if (!file) return std::nullopt;
  const json stored = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!stored.is_object() || !stored.contains("answer")) return std::nullopt;
  if (stored.value("question", json()) != question) return std::nullopt;
  return stored["answer"];
}

bool Cache::store(const std::string& kind, const json& question, const json& answer) const {
  try {
    std::filesystem::create_directories(folder_);
    const json stored{{"question", question}, {"answer", answer}};
    reports::write_file_atomically(entry(kind, question).string(), stored.dump(1) + "\n");
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace stratagem::bench
