// Consecutive windows of a row of tokens: each begins with the last token of the window before,
// which was that window's last target.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/datasets/dataset.h"

namespace stratagem::datasets {

struct TokenRow {
  std::span<const std::uint8_t> bytes;
  std::int64_t token_bytes = 1;
  std::int64_t vocabulary = 256;
  std::shared_ptr<const void> owner = {};  // owns the bytes; empty: they outlive the set
};

/// Throws std::invalid_argument, naming the row as `what`, if it is too short for a window of
/// `sequence` tokens and the next token.
DatasetPointer token_windows(TokenRow row, std::int64_t sequence, const std::string& what);

}  // namespace stratagem::datasets
