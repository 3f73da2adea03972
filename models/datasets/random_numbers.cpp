// Random features and targets without anything to learn, for examples and for timing.
#include <vector>

#include "models/datasets/random_bits.h"
#include "models/datasets/random_sets.h"

namespace stratagem::datasets {
namespace {

class RandomNumbers final : public Dataset {
 public:
  RandomNumbers(const DatasetOptions& options, std::int64_t first, std::int64_t count)
      : features_(static_cast<std::size_t>(options.features)),
        outputs_(options.real_targets ? static_cast<std::size_t>(options.outputs) : 0),
        format_{.kind = SampleKind::vector,
                .features = options.features,
                .classes = options.real_targets ? 0 : options.outputs,
                .outputs = options.real_targets ? options.outputs : 0} {
    for (std::int64_t index = 0; index < count; ++index) {
      RandomBits random(options.seed, static_cast<std::uint64_t>(first + index));
      for (std::size_t each = 0; each < features_; ++each) values_.push_back(random.uniform());
      for (std::size_t each = 0; each < outputs_; ++each) targets_.push_back(random.uniform());
      labels_.push_back(options.real_targets ? 0 : random.below(options.outputs));
    }
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Sample sample(std::int64_t index) const override {
    const auto number = static_cast<std::size_t>(index);
    return {.values = std::span(values_).subspan(number * features_, features_),
            .label = labels_.at(number),
            .targets = std::span(targets_).subspan(number * outputs_, outputs_)};
  }

 private:
  std::size_t features_;
  std::size_t outputs_;
  SampleFormat format_;
  std::vector<float> values_;
  std::vector<float> targets_;
  std::vector<std::int64_t> labels_;
};

}  // namespace

DatasetPointer random_numbers(const DatasetOptions& options, std::int64_t first,
                              std::int64_t count) {
  return std::make_shared<RandomNumbers>(options, first, count);
}

}  // namespace stratagem::datasets
