#include "models/datasets/token_windows.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace stratagem::datasets {
namespace {

class TokenWindows final : public Dataset {
 public:
  TokenWindows(TokenRow row, std::int64_t sequence)
      : row_(std::move(row)),
        sequence_(sequence),
        format_{.kind = SampleKind::tokens,
                .features = sequence + 1,
                .classes = row_.vocabulary,
                .token_bytes = row_.token_bytes} {}

  const SampleFormat& format() const override { return format_; }
  std::int64_t tokens() const { return std::ssize(row_.bytes) / row_.token_bytes; }
  std::int64_t size() const override { return (tokens() - 1) / sequence_; }
  Sample sample(std::int64_t index) const override {
    const auto bytes_of = [&](std::int64_t count) {
      return static_cast<std::size_t>(count * row_.token_bytes);
    };
    return {.bytes = row_.bytes.subspan(bytes_of(index * sequence_), bytes_of(sequence_ + 1))};
  }

 private:
  TokenRow row_;
  std::int64_t sequence_;
  SampleFormat format_;
};

}  // namespace

DatasetPointer token_windows(TokenRow row, std::int64_t sequence, const std::string& what) {
  auto windows = std::make_shared<TokenWindows>(std::move(row), sequence);
  if (windows->size() > 0) return windows;
  throw std::invalid_argument(
      fmt::format("--sequence-length {}: {} has {} tokens; a sample needs one more than the "
                  "sequence length",
                  sequence, what, windows->tokens()));
}

}  // namespace stratagem::datasets
