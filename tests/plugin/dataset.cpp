// blobs: ten clouds of points around random centres, of 128 numbers each; a model learns them
// within a few steps.
#include <cstdint>
#include <memory>
#include <vector>

#include "models/datasets/random_bits.h"
#include "models/datasets/registry.h"

namespace stratagem::datasets {
namespace {

constexpr std::int64_t features = 128;
constexpr std::int64_t classes = 10;

class Blobs : public Dataset {
 public:
  Blobs(std::int64_t first, std::int64_t count, std::uint64_t seed) : count_(count) {
    for (std::int64_t index = 0; index < count; ++index) {
      RandomBits random(seed, static_cast<std::uint64_t>(first + index));
      labels_.push_back(random.below(classes));
      RandomBits centre(seed + 1, static_cast<std::uint64_t>(labels_.back()));
      for (std::int64_t each = 0; each < features; ++each) {
        values_.push_back(centre.between(-1, 1) + random.between(-0.5F, 0.5F));
      }
    }
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return count_; }
  Sample sample(std::int64_t index) const override {
    const auto number = static_cast<std::size_t>(index);
    return {.values = std::span(values_).subspan(number * features, features),
            .label = labels_.at(number)};
  }

 private:
  std::int64_t count_;
  std::vector<float> values_;
  std::vector<std::int64_t> labels_;
  SampleFormat format_{.kind = SampleKind::vector, .features = features, .classes = classes};
};

Datasets blobs(const DatasetOptions& options) {
  return drawn_sets(options, [&](std::int64_t first, std::int64_t count) {
    return std::make_shared<Blobs>(first, count, options.seed);
  });
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "blobs",
    .summary = "ten clouds of points with 128 coordinates",
    .kinds = {stratagem::datasets::SampleKind::vector},
    .drawn = true,
    .make = stratagem::datasets::blobs});
