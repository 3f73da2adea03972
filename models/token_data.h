// Tokens for language models: random ones, or the bytes of a real text.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace stratagem::models {

enum class TokenSource {
  random,  // uniform over the vocabulary, with nothing to learn
  text,    // Shakespeare
};

/// Returns the text of `TokenSource::text`: the first 300 kB of William Shakespeare's public-domain
/// plays that Karpathy collected for char-rnn (data/tinyshakespeare). It is part of the program.
std::string_view training_text();

/// Returns `count` samples of `length` tokens below `vocabulary`: [count, length] (int64).
at::Tensor random_tokens(std::int64_t count, std::int64_t length, std::int64_t vocabulary,
                         at::Generator& generator);

/// Returns the number of samples of `length` tokens in an epoch of the text: consecutive windows,
/// each beginning with the last token of the one before, which was its last target.
std::int64_t text_samples(std::int64_t length);

/// Returns samples `first`, `first` + 1, ... of a training on the text: [count, length] (int64).
/// Epochs follow one another, each in the order of a DistributedSampler of one replica with this
/// seed. Throws std::invalid_argument if the vocabulary has no room for every byte.
at::Tensor text_tokens(std::uint64_t first, std::int64_t count, std::int64_t length,
                       std::int64_t vocabulary, std::uint64_t seed);

}  // namespace stratagem::models
