#include "training/checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace stratagem::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-";
constexpr std::string_view suffix = ".pt";

}  // namespace

nlohmann::ordered_json log_line(const Entry& entry) {
  return {{"event", "checkpoint"}, {"step", entry.step}, {"path", entry.path.string()}};
}

Folder::Folder(fs::path path) : path_(std::move(path)) {
  const std::string where = "--checkpoint-dir " + path_.string();
  std::error_code error;
  fs::create_directories(path_, error);
  const std::string failure = where + ": cannot write there (choose another folder)";
  if (error) throw std::system_error(error, failure);
  const fs::path lock = path_ / ".lock";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw std::system_error(errno, std::generic_category(), failure);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw std::invalid_argument(
        fmt::format("{}: another run is writing there; use another folder", where));
  }
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with(".step-") || name.starts_with(".best.");
    if (is_ours && name.ends_with(".partial")) fs::remove(entry.path());
  }
}

Folder::~Folder() { ::close(lock_); }

std::optional<std::int64_t> Folder::step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - suffix.size();
  std::int64_t step = 0;
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
  if (error != std::errc() || stop != end) return std::nullopt;
  return step;
}

fs::path Folder::path_of(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("{}{:08}{}", prefix, step, suffix);
}

fs::path Folder::best_of(const fs::path& folder) { return folder / "best.pt"; }

std::vector<Entry> Folder::entries_in(const fs::path& folder) {
  std::vector<Entry> entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (const auto step = step_of(entry.path())) {
      entries.push_back({*step, entry.path()});
    }
  }
  std::ranges::sort(entries, {}, &Entry::step);
  return entries;
}

fs::path Folder::set_aside(const fs::path& folder, const Entry& from) {
  const bool is_here = fs::equivalent(fs::absolute(from.path).parent_path(), folder);
  std::vector<Entry> others = entries_in(folder);
  if (is_here) std::erase_if(others, [&](const Entry& entry) { return entry.step <= from.step; });
  if (others.empty()) return {};
  fs::path aside;
  for (int number = 1; aside.empty() || !fs::create_directory(aside); ++number) {
    aside = folder / fmt::format("abandoned-{}", number);
  }
  // The newest moves first, so that an interruption leaves a shorter course without a gap.
  std::ranges::reverse(others);
  for (const Entry& entry : others) fs::rename(entry.path, aside / entry.path.filename());
  return aside;
}

void Folder::thin_out(const fs::path& folder, std::size_t keep) {
  const std::vector<Entry> entries = entries_in(folder);
  if (keep == 0 || entries.size() <= keep) return;
  for (std::size_t index = 0; index + keep < entries.size(); ++index) {
    fs::remove(entries[index].path);
  }
}

}  // namespace stratagem::checkpoint
