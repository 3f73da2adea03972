// The text in the program, one byte a token.
#include "models/datasets/registry.h"
#include "models/datasets/token_windows.h"

namespace stratagem::datasets {
namespace {

Datasets text(const DatasetOptions& options) {
  const std::string_view characters = options.characters;
  const std::span<const std::uint8_t> bytes(
      reinterpret_cast<const std::uint8_t*>(characters.data()), characters.size());
  return {.training = token_windows({.bytes = bytes}, options.sequence, "the text"),
          .validation = nullptr,
          .test = nullptr};
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "text",
    .summary = "300 kB of Shakespeare, a byte a token",
    .kinds = {stratagem::datasets::SampleKind::tokens},
    .make = stratagem::datasets::text});
