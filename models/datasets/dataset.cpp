#include "models/datasets/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/datasets/formats.h"

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

/// Samples that a fraction of the training set has.
std::int64_t share(const char* option, double fraction, std::int64_t samples) {
  const auto count =
      static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(samples)));
  if (count > 0) return count;
  throw std::invalid_argument(
      fmt::format("{} {:g}: of {} samples that is none", option, fraction, samples));
}

/// Takes what is asked for as fractions from the end of the training set.
Datasets cut(Datasets sets, const DatasetOptions& options) {
  const std::int64_t samples = sets.training->size();
  std::int64_t left = samples;
  const auto take = [&](const char* option, double fraction, DatasetPointer& part) {
    if (fraction == 0) part = nullptr;
    if (fraction <= 0) return;
    const std::int64_t count = share(option, fraction, samples);
    left -= count;
    part = part_of(sets.training, std::max<std::int64_t>(left, 0), count);
  };
  take("--test", options.test, sets.test);
  take("--validation", options.validation, sets.validation);
  if (left <= 0) {
    throw std::invalid_argument(
        fmt::format("--validation {:g}, --test {:g}: of {} samples none is left to train on",
                    options.validation, options.test, samples));
  }
  if (left < samples) sets.training = part_of(sets.training, 0, left);
  return sets;
}

/// Sets that are drawn: each part has samples of its own.
template <class Draw>
Datasets drawn(const DatasetOptions& options, Draw draw) {
  if (options.samples < 1) {
    throw std::invalid_argument(fmt::format("--samples {}: 1 or more", options.samples));
  }
  const std::int64_t count = options.samples;
  Datasets sets{.training = draw(0, count), .validation = nullptr, .test = nullptr};
  if (options.validation < 0) sets.validation = draw(count, count);
  if (options.test < 0) sets.test = draw(2 * count, count);
  return sets;
}

/// Sets of files: what the format calls test set serves as validation set, too.
Datasets from_files(const DatasetOptions& options, OwnSplit split) {
  Datasets sets{.training = std::move(split.training), .validation = nullptr, .test = nullptr};
  if (options.validation < 0) sets.validation = split.test;
  if (options.test < 0) sets.test = split.test;
  return sets;
}

[[noreturn]] void refuse(const std::string& name) {
  throw std::invalid_argument(fmt::format(
      "--data {}: unknown; random, shapes, text, mnist:FOLDER or cifar10:FOLDER", name));
}

Datasets whole_sets(const DatasetOptions& options, std::string_view characters) {
  const std::size_t colon = options.name.find(':');
  const std::string kind = options.name.substr(0, colon);
  if (colon != std::string::npos) {
    const std::string folder = options.name.substr(colon + 1);
    if (kind == "mnist") return from_files(options, mnist(folder));
    if (kind == "cifar10") return from_files(options, cifar10(folder));
    refuse(options.name);
  }
  if (kind == "random") {
    return drawn(options, [&](auto first, auto count) {
      return options.image_size > 0 ? random_images(options, first, count)
                                    : random_numbers(options, first, count);
    });
  }
  if (kind == "shapes") {
    return drawn(options,
                 [&](auto first, auto count) { return shapes(first, count, options.seed); });
  }
  if (kind != "text") refuse(options.name);
  if (options.validation < 0 || options.test < 0) {
    throw std::invalid_argument("--data text has no test set of its own: give a fraction");
  }
  return {.training = text(characters, options.sequence), .validation = nullptr, .test = nullptr};
}

}  // namespace

DatasetPointer part_of(DatasetPointer whole, std::int64_t first, std::int64_t count) {
  return std::make_shared<Part>(std::move(whole), first, count);
}

Datasets make_datasets(const DatasetOptions& options, std::string_view characters) {
  return cut(whole_sets(options, characters), options);
}

}  // namespace stratagem::datasets
