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

/// The text that `TokenSource::text` draws from: the first 300 kB of the public-domain plays of
/// William Shakespeare that Karpathy collected for char-rnn (data/tinyshakespeare). It is part of
/// the program.
std::string_view training_text();

/// `count` samples of `length` tokens below `vocabulary`: [count, length] (int64).
at::Tensor random_tokens(std::int64_t count, std::int64_t length, std::int64_t vocabulary,
                         at::Generator& generator);

/// How many samples of `length` tokens an epoch of the text has: windows side by side, each
/// beginning with the last token of the one before, whose target it was.
std::int64_t text_samples(std::int64_t length);

/// Samples `first`, `first` + 1, ... of a training on the text: [count, length] (int64). Epoch by
/// epoch, in the order of a DistributedSampler of one replica with this seed. Throws
/// std::invalid_argument when the vocabulary has no room for every byte.
at::Tensor text_tokens(std::uint64_t first, std::int64_t count, std::int64_t length,
                       std::int64_t vocabulary, std::uint64_t seed);

}  // namespace stratagem::models
