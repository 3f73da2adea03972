// Dataset: numbered samples to train on. Samples are views into memory that the set owns or has
// mapped, so that reading one costs nothing; what is drawn at random is a function of the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stratagem::datasets {

enum class SampleKind {
  image,   // bytes [channels, height, width]
  vector,  // floats [features]
  tokens,  // bytes [length], each a token; the targets are the tokens one position later
};

struct SampleFormat {
  SampleKind kind = SampleKind::vector;
  std::int64_t channels = 0;  // of an image
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t features = 0;  // of a vector, or the tokens of a sample and one more
  std::int64_t classes = 0;   // labels are below it; 0: targets are real numbers
  std::int64_t outputs = 0;   // real numbers of a target

  bool operator==(const SampleFormat&) const = default;
};

/// Valid as long as its dataset. What its format does not have is empty.
struct Sample {
  std::span<const std::uint8_t> bytes = {};
  std::span<const float> values = {};
  std::int64_t label = 0;
  std::span<const float> targets = {};
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const SampleFormat& format() const = 0;
  virtual std::int64_t size() const = 0;
  /// `index` is below size(). Any thread may call it.
  virtual Sample sample(std::int64_t index) const = 0;
};

using DatasetPointer = std::shared_ptr<const Dataset>;

/// Samples [first, first + count) of another set.
DatasetPointer part_of(DatasetPointer whole, std::int64_t first, std::int64_t count);

/// What a training reads; a part that was not asked for is null.
struct Datasets {
  DatasetPointer training;
  DatasetPointer validation;
  DatasetPointer test;
};

struct DatasetOptions {
  /// random, shapes, text, mnist:FOLDER or cifar10:FOLDER
  std::string name = "random";
  std::int64_t samples = 1000;  // of the training set, of sets that are drawn
  std::int64_t features = 10;   // of random: numbers of a vector, channels of an image
  std::int64_t image_size = 0;  // of random: pixels a side; 0: vectors
  std::int64_t outputs = 10;    // of random: classes, or real numbers
  bool real_targets = false;    // of random
  std::int64_t sequence = 128;  // tokens of a sample, of text
  std::uint64_t seed = 0;
  /// As a fraction of the training set, whose last samples it takes; 0: none; negative: the set's
  /// own test set, or one drawn as large as the training set (a text has neither).
  double validation = 0;
  double test = 0;
};

/// Throws std::invalid_argument, in one line, for an unknown name, a file that is missing, short,
/// of another format or has a label out of range, and for a part without samples.
/// `characters` is the text, which outlives the sets.
Datasets make_datasets(const DatasetOptions& options, std::string_view characters);

}  // namespace stratagem::datasets
