// Dataset: numbered samples to train on. A sample is a view into memory that the set owns or has
// mapped, or it owns what was decoded for it; what is drawn at random is a function of the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem::datasets {

enum class SampleKind {
  image,   // bytes [channels, height, width]
  vector,  // floats [features]
  tokens,  // bytes [length, token_bytes]; the targets are the tokens one position later
};

struct SampleFormat {
  SampleKind kind = SampleKind::vector;
  std::int64_t channels = 0;  // of an image
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t features = 0;     // of a vector, or the tokens of a sample and one more
  std::int64_t classes = 0;      // labels are below it; 0: targets are real numbers
  std::int64_t outputs = 0;      // real numbers of a target
  std::int64_t token_bytes = 1;  // 1, 2 or 4 bytes of a token, the least significant one first
  bool decoded = false;          // reading a sample takes work: loader threads do it

  bool operator==(const SampleFormat&) const = default;
};

/// Valid as long as its dataset and itself. What its format does not have is empty.
struct Sample {
  std::span<const std::uint8_t> bytes = {};
  std::span<const float> values = {};
  std::int64_t label = 0;
  std::span<const float> targets = {};
  std::shared_ptr<const std::vector<std::uint8_t>> memory = {};  // of `bytes`; empty: the set's
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

/// The data of a training. A part is null if it was not requested or the set does not have it.
struct Datasets {
  DatasetPointer training;
  DatasetPointer validation;
  DatasetPointer test;
};

struct DatasetOptions {
  /// A registered name (models/datasets/registry.h) and, where the set takes one, `:` and a path.
  std::string name = "random";
  std::string path = {};             // what follows the colon; make_datasets() fills it in
  std::string_view characters = {};  // of text; likewise
  std::int64_t samples = 1000;       // of the training set, of sets that are drawn
  std::int64_t features = 10;        // of random: numbers of a vector, channels of an image
  /// Pixels a side: images of another size are resized. 0: each set's own; of random: vectors.
  std::int64_t image_size = 0;
  std::int64_t outputs = 10;         // of random: classes, or real numbers; of tokens: vocabulary
  bool real_targets = false;         // of random
  std::int64_t sequence = 128;       // tokens of a sample
  std::string token_dtype = "auto";  // of a file of tokens: uint16, uint32, or auto
  std::uint64_t seed = 0;
  /// As a fraction of the training set, whose last samples it takes; 0: none; negative: the set's
  /// own part, or one drawn as large as the training set. A set without a validation part of its
  /// own validates on its test set.
  double validation = 0;
  double test = 0;
};

/// Throws std::invalid_argument, in one line, for an unknown name, a file that is missing, short,
/// of another format or has a label or token out of range, and for a part without samples.
/// `characters` is the text, which outlives the sets.
Datasets make_datasets(const DatasetOptions& options, std::string_view characters);

}  // namespace stratagem::datasets
