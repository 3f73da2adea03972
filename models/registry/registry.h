// The models by name. Each registers itself in its own file:
//   STRATAGEM_REGISTER(ModelEntry{...});
// Link these files as objects: a static library drops files without references.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry/named_entries.h"

namespace stratagem::models {

struct Model;

struct ModelOptions {
  double width = 1.0;         // multiplies the hidden widths; each stays at least 1
  std::int64_t classes = 0;   // outputs; 0: the model's own number
  std::int64_t features = 0;  // for a model that takes sizes; 0: its own number
  bool bias = true;           // for a model that takes sizes
  double dropout = 0;         // for a model with dropout: the rate
};

enum class InputKind {
  image,   // [n, 3, size, size]
  vector,  // [n, features]
  tokens,  // [n, sequence] token ids (int64); the targets are the ids one position later
};

struct ShardedSize {
  std::string what;  // "heads"
  std::int64_t size = 0;
  bool evenly = false;  // the ranks must divide it; otherwise some may have one more than others
  /// More ranks than `size`, up to this number, have copies, if `size` divides the ranks and the
  /// ranks divide this number; 0: there are no copies.
  std::int64_t copies_up_to = 0;

  /// Returns whether this many ranks can share it.
  bool can_be_shared_by(std::int64_t ranks) const {
    if (ranks <= size) return !evenly || size % ranks == 0;
    return copies_up_to >= ranks && ranks % size == 0 && copies_up_to % ranks == 0;
  }
  std::int64_t most_ranks() const { return std::max(size, copies_up_to); }
};
/// The ShardedSize::size that stands for the number of outputs in the options.
inline constexpr std::int64_t outputs_from_options = 0;

struct ModelEntry {
  std::string name = {};
  std::string summary = {};
  InputKind input_kind = InputKind::image;
  std::int64_t default_image_size = 0;                  // pixels a side; 0 without images
  std::int64_t features = 0;                            // channels of an image, length of a vector
  std::int64_t classes = 0;                             // for tokens: the vocabulary
  std::function<Model(const ModelOptions&)> make = {};  // float32, without memory (models/layer.h)
  bool has_batch_norm = false;
  std::int64_t smallest_image = 0;
  std::vector<std::string> default_cut = {};  // the cut into two stages
  std::int64_t layers = 0;                    // the number of layers from make()
  std::int64_t longest_sequence = 0;          // in tokens
  std::int64_t default_sequence = 0;          // in tokens; 0: the longest
  /// The sizes that tensor parallelism shards, at least one for each rank; empty: it cannot split
  /// this model.
  std::vector<ShardedSize> sharded_sizes = {};
  // The group of models that differ only in their sizes; empty: there is no group.
  std::string family = {};
  /// Features, outputs and bias come from the options.
  bool takes_sizes = false;
  bool has_dropout = false;
  /// The model has the width, the image size and the sequence length of its file. Its layers are
  /// not Stratagem's own: no backward pass is split.
  bool fixed_size = false;

  bool has_images() const { return input_kind == InputKind::image; }
  bool has_tokens() const { return input_kind == InputKind::tokens; }
  std::int64_t usual_sequence() const {
    return default_sequence == 0 ? longest_sequence : default_sequence;
  }
  /// Returns whether ranks can share the positions of a sample: layers of the model's own know
  /// theirs.
  bool shares_positions() const { return has_tokens() && !sharded_sizes.empty(); }
  /// Returns whether so many ranks of a tensor-parallel group have copies of a part.
  bool is_copied_by(std::int64_t ranks) const {
    return std::ranges::any_of(sharded_sizes, [=](const ShardedSize& one) {
      return one.copies_up_to > 0 && one.size < ranks;
    });
  }
  static Registry<ModelEntry>& registry();
};

/// A kind of file that models are read from: `--model NAME:FILE`.
struct ModelFormat {
  std::string name = {};
  std::string summary = {};
  /// Throws std::invalid_argument in one line that names the option.
  std::function<ModelEntry(const std::string& file)> load = {};

  static Registry<ModelFormat>& registry();
};

/// Throws std::invalid_argument with the choices and the nearest name.
const ModelEntry& find_model(std::string_view name);

/// Returns the sorted names.
std::vector<std::string> model_names();

/// Returns max(1, round(base * width)). Throws std::invalid_argument unless width is positive.
std::int64_t scaled_width(std::int64_t base, double width);

/// Returns the requested number of classes, or the model's own for 0. Throws std::invalid_argument
/// if it is negative.
std::int64_t class_count(const ModelOptions& options, std::int64_t own);

}  // namespace stratagem::models
