// Dataset: numbered samples to train on. A sample is a view into memory that the set owns or has
// mapped, or it owns its decoded bytes. Random sets are functions of the seed.
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
  std::int64_t channels = 0;  // an image's
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t features = 0;     // a vector's; for tokens those of a sample plus one
  std::int64_t classes = 0;      // labels are below it; 0: targets are real numbers
  std::int64_t outputs = 0;      // the real numbers of a target
  std::int64_t token_bytes = 1;  // 1, 2 or 4 bytes of a token, the least significant one first
  bool decoded = false;          // reading a sample takes work, which loader threads do

  bool operator==(const SampleFormat&) const = default;
};

/// A sample is valid as long as its dataset and itself. Fields that its format lacks are empty.
struct Sample {
  std::span<const std::uint8_t> bytes = {};
  std::span<const float> values = {};
  std::int64_t label = 0;
  std::span<const float> targets = {};
  std::shared_ptr<const std::vector<std::uint8_t>> memory = {};  // owns `bytes` unless the set does
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const SampleFormat& format() const = 0;
  virtual std::int64_t size() const = 0;
  /// Returns sample `index`, below size(). Any thread may call it.
  virtual Sample sample(std::int64_t index) const = 0;
};

using DatasetPointer = std::shared_ptr<const Dataset>;

/// Returns samples [first, first + count) of another set.
DatasetPointer part_of(DatasetPointer whole, std::int64_t first, std::int64_t count);

/// The data of a training. A part is null if it was not requested or the set does not have it.
struct Datasets {
  DatasetPointer training;
  DatasetPointer validation;
  DatasetPointer test;
};

struct DatasetOptions {
  /// A registered name (models/datasets/registry.h), plus `:` and a path if the set takes one.
  std::string name = "random";
  std::string path = {};             // the path after the colon; make_datasets() fills it in
  std::string_view characters = {};  // the text; make_datasets() fills it in
  std::int64_t samples = 1000;       // the size of a drawn training set
  std::int64_t features = 10;        // random: numbers of a vector, channels of an image
  /// The pixels a side, to which images are resized. 0: each set's own; for random: vectors.
  std::int64_t image_size = 0;
  std::int64_t outputs = 10;         // random: classes, or real numbers; tokens: vocabulary
  bool real_targets = false;         // random: real targets
  std::int64_t sequence = 128;       // the tokens of a sample
  std::string token_dtype = "auto";  // the type in a token file: uint16, uint32, or auto
  std::uint64_t seed = 0;
  /// The fraction of the training set to take from its end; 0: none; negative: the set's own part,
  /// or one drawn as large as the training set. A set without its own validation part validates on
  /// its test set.
  double validation = 0;
  double test = 0;
};

/// Throws std::invalid_argument, in one line, for an unknown name, for a file that is missing,
/// short, of another format or has a label or token out of range, and for an empty part.
/// `characters` is the text, which must outlive the sets.
Datasets make_datasets(const DatasetOptions& options, std::string_view characters);

}  // namespace stratagem::datasets
