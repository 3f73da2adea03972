// Windows of a text, a byte a token.
#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "models/datasets/formats.h"

namespace stratagem::datasets {
namespace {

class Text final : public Dataset {
 public:
  Text(std::string_view characters, std::int64_t sequence)
      : characters_(reinterpret_cast<const std::uint8_t*>(characters.data()), characters.size()),
        sequence_(sequence),
        format_{.kind = SampleKind::tokens, .features = sequence + 1, .classes = 256} {
    if (size() > 0) return;
    throw std::invalid_argument(
        fmt::format("--sequence-length {}: the text has {} tokens, and a sample needs one more "
                    "than its length",
                    sequence, characters.size()));
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override {
    return (static_cast<std::int64_t>(characters_.size()) - 1) / sequence_;
  }
  Sample sample(std::int64_t index) const override {
    return {.bytes = characters_.subspan(static_cast<std::size_t>(index * sequence_),
                                         static_cast<std::size_t>(sequence_ + 1))};
  }

 private:
  std::span<const std::uint8_t> characters_;
  std::int64_t sequence_;
  SampleFormat format_;
};

}  // namespace

DatasetPointer text(std::string_view characters, std::int64_t sequence) {
  return std::make_shared<Text>(characters, sequence);
}

}  // namespace stratagem::datasets
