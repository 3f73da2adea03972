// Images of noise with random labels and nothing to learn, for timing at any size.
#include <vector>

#include "models/datasets/random_bits.h"
#include "models/datasets/random_sets.h"

namespace stratagem::datasets {
namespace {

/// Each image is a window into one stretch of noise, so that a million images need no memory.
class RandomImages final : public Dataset {
 public:
  RandomImages(const DatasetOptions& options, std::int64_t first, std::int64_t count)
      : seed_(options.seed),
        first_(first),
        count_(count),
        format_{.kind = SampleKind::image,
                .channels = options.features,
                .height = options.image_size,
                .width = options.image_size,
                .classes = options.outputs},
        bytes_(
            static_cast<std::size_t>(options.features * options.image_size * options.image_size)),
        noise_(bytes_ + windows) {
    RandomBits random(seed_, 0);
    for (std::uint8_t& value : noise_) value = static_cast<std::uint8_t>(random.next());
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return count_; }
  Sample sample(std::int64_t index) const override {
    RandomBits random(seed_, static_cast<std::uint64_t>(first_ + index) + 1);
    const auto start = static_cast<std::size_t>(random.below(windows));
    return {.bytes = std::span(noise_).subspan(start, bytes_),
            .label = random.below(format_.classes)};
  }

 private:
  static constexpr std::int64_t windows = std::int64_t{1} << 20;

  std::uint64_t seed_;
  std::int64_t first_;
  std::int64_t count_;
  SampleFormat format_;
  std::size_t bytes_;
  std::vector<std::uint8_t> noise_;
};

}  // namespace

DatasetPointer random_images(const DatasetOptions& options, std::int64_t first,
                             std::int64_t count) {
  return std::make_shared<RandomImages>(options, first, count);
}

}  // namespace stratagem::datasets
