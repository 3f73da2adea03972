#include "models/token_data.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "models/distributed_sampler.h"

namespace stratagem::models {
namespace {

constexpr std::int64_t kByteValues = 256;

}  // namespace

at::Tensor random_tokens(std::int64_t count, std::int64_t length, std::int64_t vocabulary,
                         at::Generator& generator) {
  return at::empty({count, length}, at::TensorOptions(at::kLong)).random_(0, vocabulary, generator);
}

std::int64_t text_samples(std::int64_t length) {
  return (static_cast<std::int64_t>(training_text().size()) - 1) / (length - 1);
}

at::Tensor text_tokens(std::uint64_t first, std::int64_t count, std::int64_t length,
                       std::int64_t vocabulary, std::uint64_t seed) {
  if (vocabulary < kByteValues) {
    throw std::invalid_argument(
        fmt::format("a text of bytes needs a vocabulary of {}, not {}", kByteValues, vocabulary));
  }
  DistributedSampler sampler({.samples = text_samples(length), .seed = seed});
  const auto samples = static_cast<std::uint64_t>(sampler.size());
  at::Tensor tokens = at::empty({count, length}, at::TensorOptions(at::kLong));
  auto* token = tokens.mutable_data_ptr<std::int64_t>();
  std::vector<std::int64_t> order;
  for (std::uint64_t sample = first; sample < first + static_cast<std::uint64_t>(count); ++sample) {
    if (order.empty() || sample % samples == 0) {
      sampler.set_epoch(sample / samples);
      order = sampler.indices();
    }
    const std::int64_t start = order[sample % samples] * (length - 1);
    for (const char character : training_text().substr(static_cast<std::size_t>(start),
                                                       static_cast<std::size_t>(length))) {
      *token++ = static_cast<unsigned char>(character);
    }
  }
  return tokens;
}

}  // namespace stratagem::models
