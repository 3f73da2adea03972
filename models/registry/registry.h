// The models that can be asked for by name. Each registers itself in its own file:
//   STRATAGEM_REGISTER(ModelEntry{...});
// Link these files as objects: a static library drops files that nothing refers to.
#pragma once

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
  std::int64_t classes = 0;   // outputs; 0 is the model's own number
  std::int64_t features = 0;  // of a model that takes sizes; 0 is its own number
  bool bias = true;           // likewise
};

enum class InputKind {
  image,   // [n, 3, size, size]
  vector,  // [n, features]
  tokens,  // [n, sequence] token ids (int64); the targets are the ids one position later
};

struct ShardedSize {
  std::string what;  // "heads"
  std::int64_t size = 0;
  bool evenly = false;  // the ranks must divide it; else some may have one more than others
};
/// Of a model that takes sizes: as many as it has outputs.
inline constexpr std::int64_t outputs_from_options = 0;

struct ModelEntry {
  std::string name = {};
  std::string summary = {};
  InputKind input_kind = InputKind::image;
  std::int64_t default_image_size = 0;                  // pixels a side; 0 without images
  std::int64_t features = 0;                            // channels of an image, length of a vector
  std::int64_t classes = 0;                             // for tokens the vocabulary
  std::function<Model(const ModelOptions&)> make = {};  // float32, without memory (models/layer.h)
  bool has_batch_norm = false;
  std::int64_t smallest_image = 0;
  std::vector<std::string> default_cut = {};  // the cut into two stages
  std::int64_t layers = 0;                    // that make() gives
  std::int64_t longest_sequence = 0;          // of tokens; the default, too
  /// What tensor parallelism shards, so that each rank has one at least; empty: it cannot split
  /// this model.
  std::vector<ShardedSize> sharded_sizes = {};
  // What models share that differ in their sizes alone; empty: it is like no other.
  std::string family = {};
  /// Whether features, outputs and bias come from the options.
  bool takes_sizes = false;

  bool has_images() const { return input_kind == InputKind::image; }
  bool has_tokens() const { return input_kind == InputKind::tokens; }
  static Registry<ModelEntry>& registry();
};

/// Throws std::invalid_argument with the choices and the nearest name.
const ModelEntry& find_model(std::string_view name);

/// Sorted.
std::vector<std::string> model_names();

/// max(1, round(base * width)). Throws std::invalid_argument unless width is positive.
std::int64_t scaled_width(std::int64_t base, double width);

/// The number of classes asked for, or the model's own.
/// Throws std::invalid_argument when it is negative.
std::int64_t class_count(const ModelOptions& options, std::int64_t own);

}  // namespace stratagem::models
