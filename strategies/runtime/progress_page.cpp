#include "strategies/runtime/progress_page.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>

namespace stratagem::runtime {
namespace {
constexpr std::size_t words = 6;
constexpr std::size_t characters = words * sizeof(std::uint64_t) - 1;
}  // namespace

// Words are atomic, so that a reader in another thread or process sees each word whole.
struct ProgressPage::Slot {
  std::array<std::atomic<std::uint64_t>, words> text;
};

ProgressPage::ProgressPage(int fd, int slots)
    : fd_(fd), slots_(slots), bytes_(sizeof(Slot) * static_cast<std::size_t>(slots)) {
  const auto require = [](bool succeeded) {
    if (!succeeded) throw std::system_error(errno, std::generic_category(), "activity board");
  };
  if (fd_ < 0) {
    own_fd_ = UniqueFd(memfd_create("stratagem-activity", 0));
    fd_ = own_fd_.get();
    require(fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes_)) == 0);
  }
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  require(mapped != MAP_FAILED);
  memory_ = static_cast<Slot*>(mapped);
}

ProgressPage::~ProgressPage() { munmap(memory_, bytes_); }

void ProgressPage::write(int slot, std::string_view text) {
  if (slot < 0 || slot >= slots_) return;
  std::array<char, words * sizeof(std::uint64_t)> bytes{};
  std::copy_n(text.begin(), std::min(text.size(), characters), bytes.begin());
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t value = 0;
    std::copy_n(bytes.data() + word * sizeof(value), sizeof(value),
                reinterpret_cast<char*>(&value));
    memory_[slot].text[word].store(value, std::memory_order_relaxed);
  }
}

std::string ProgressPage::read(int slot) const {
  if (slot < 0 || slot >= slots_) return {};
  std::array<char, words * sizeof(std::uint64_t)> bytes{};
  for (std::size_t word = 0; word < words; ++word) {
    const std::uint64_t value = memory_[slot].text[word].load(std::memory_order_relaxed);
    std::copy_n(reinterpret_cast<const char*>(&value), sizeof(value),
                bytes.data() + word * sizeof(value));
  }
  return {bytes.data(), std::find(bytes.begin(), bytes.end(), '\0')};
}

std::string ProgressPage::summary() const {
  std::string text;
  for (int slot = 0; slot < slots_; ++slot) {
    const std::string action = read(slot);
    if (action.empty()) continue;
    text += fmt::format("{}device {}: {}", text.empty() ? "" : ", ", slot, action);
  }
  return text;
}

}  // namespace stratagem::runtime
