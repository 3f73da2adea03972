// Tokens for language models: random ones, or those of a real text, a byte each.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace stratagem::models {

enum class TokenSource {
  random,  // uniform over the vocabulary: nothing to learn
  text,    // Shakespeare
};

// The text that `TokenSource::text` draws from: the first 300 kB of the public-domain plays of
// William Shakespeare that Karpathy collected for char-rnn (data/tinyshakespeare). It is part of
// the program.
std::string_view training_text();

// `count` samples of `length` tokens below `vocabulary`: [count, length] (int64). Of a text,
// windows that begin anywhere. Throws std::invalid_argument when the vocabulary has no room for
// every byte.
at::Tensor draw_tokens(TokenSource source, std::int64_t count, std::int64_t length,
                       std::int64_t vocabulary, at::Generator& generator);

}  // namespace stratagem::models
