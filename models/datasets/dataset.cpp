#include "models/datasets/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/datasets/image_size.h"
#include "models/datasets/registry.h"

namespace stratagem::datasets {
namespace {

class Part final : public Dataset {
 public:
  Part(DatasetPointer whole, std::int64_t first, std::int64_t count)
      : whole_(std::move(whole)), first_(first), count_(count) {}

  const SampleFormat& format() const override { return whole_->format(); }
  std::int64_t size() const override { return count_; }
  Sample sample(std::int64_t index) const override { return whole_->sample(first_ + index); }

 private:
  DatasetPointer whole_;
  std::int64_t first_;
  std::int64_t count_;
};

/// Returns the number of samples in a fraction of the training set.
std::int64_t share(const char* option, double fraction, std::int64_t samples) {
  const auto count =
      static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(samples)));
  if (count > 0) return count;
  throw std::invalid_argument(fmt::format(
      "{} {:g}: selects none of {} samples; give a larger fraction", option, fraction, samples));
}

/// Returns the requested parts: the set's own, or fractions from the end of the training set.
Datasets cut(Datasets sets, const DatasetOptions& options) {
  const std::int64_t samples = sets.training->size();
  std::int64_t left = samples;
  const auto take = [&](const char* option, double fraction, DatasetPointer& part) {
    if (fraction == 0) part = nullptr;
    if (fraction < 0 && !part) {
      throw std::invalid_argument(fmt::format(
          "{} own: --data {} has no such split; give a fraction", option, options.name));
    }
    if (fraction <= 0) return;
    const std::int64_t count = share(option, fraction, samples);
    left -= count;
    part = part_of(sets.training, std::max<std::int64_t>(left, 0), count);
  };
  if (!sets.validation) sets.validation = sets.test;
  take("--test", options.test, sets.test);
  take("--validation", options.validation, sets.validation);
  if (left <= 0) {
    throw std::invalid_argument(
        fmt::format("--validation {:g}, --test {:g}: leave none of {} samples to train on; give "
                    "smaller fractions",
                    options.validation, options.test, samples));
  }
  if (left < samples) sets.training = part_of(sets.training, 0, left);
  return sets;
}

/// Makes the registered set and resizes its images to the requested size.
Datasets whole_sets(const DatasetOptions& options) {
  Datasets sets = entry_of(options.name).make(options);
  for (DatasetPointer* set : {&sets.training, &sets.validation, &sets.test}) {
    if (*set) *set = of_size(std::move(*set), options.image_size);
  }
  return sets;
}

}  // namespace

DatasetPointer part_of(DatasetPointer whole, std::int64_t first, std::int64_t count) {
  return std::make_shared<Part>(std::move(whole), first, count);
}

Datasets make_datasets(const DatasetOptions& options, std::string_view characters) {
  DatasetOptions all = options;
  all.characters = characters;
  if (const std::size_t colon = options.name.find(':'); colon != std::string::npos) {
    all.path = options.name.substr(colon + 1);
  }
  return cut(whole_sets(all), all);
}

}  // namespace stratagem::datasets
