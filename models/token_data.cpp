#include "models/token_data.h"

#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>

namespace stratagem::models {
namespace {

constexpr std::int64_t kByteValues = 256;

}  // namespace

at::Tensor draw_tokens(TokenSource source, std::int64_t count, std::int64_t length,
                       std::int64_t vocabulary, at::Generator& generator) {
  const auto ids = at::TensorOptions(at::kLong);
  at::Tensor tokens = at::empty({count, length}, ids);
  if (source == TokenSource::random) {
    return tokens.random_(0, vocabulary, generator);
  }
  if (vocabulary < kByteValues) {
    throw std::invalid_argument("a text of bytes needs a vocabulary of " +
                                std::to_string(kByteValues) + ", not " +
                                std::to_string(vocabulary));
  }
  const std::string_view text = training_text();
  const auto last_start = static_cast<std::int64_t>(text.size()) - length;
  const at::Tensor starts = at::empty({count}, ids).random_(0, last_start + 1, generator);
  auto* token = tokens.mutable_data_ptr<std::int64_t>();
  for (std::int64_t sample = 0; sample < count; ++sample) {
    const auto start = static_cast<std::size_t>(starts.const_data_ptr<std::int64_t>()[sample]);
    for (const char character : text.substr(start, static_cast<std::size_t>(length))) {
      *token++ = static_cast<unsigned char>(character);
    }
  }
  return tokens;
}

}  // namespace stratagem::models
