// GPT: a decoder of transformer blocks with token and position embedding before them, and a final
// normalisation and an untied head after them. Layers: embedding, blocks.0, ..., norm, head.
#pragma once

#include <cstdint>

#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models {

struct GptSize {
  std::int64_t features = 0;
  std::int64_t blocks = 0;
  std::int64_t heads = 0;
  std::int64_t longest_sequence = 0;
  std::int64_t vocabulary = 0;
  std::int64_t default_sequence = 0;  // 0: the longest
};

/// Width multiplies the features of a head; the number of heads stays. Initial values are GPT-2's:
/// normal with standard deviation 0.02, divided, for the layers before a residual sum, by the root
/// of their number. Dropout follows the embedding, the projection of attention and the MLP, as in
/// GPT-2; GPT-2's dropout of attention probabilities is left out.
ModelEntry gpt_entry(const std::string& name, const std::string& summary, const GptSize& size);

}  // namespace stratagem::models
