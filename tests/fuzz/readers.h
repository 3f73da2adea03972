// The readers of files that others wrote, as functions of bytes, for fuzzing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stratagem::fuzz {

struct Reader {
  std::string_view name;  // of its folder below corpus/
  /// Reads the bytes as a file. Throws nothing: an error in words is what a reader may answer, and
  /// every other exception ends the process.
  void (*read)(std::span<const std::uint8_t> bytes);
};

std::span<const Reader> readers();

/// Throws std::invalid_argument for an unknown name.
const Reader& reader_of(std::string_view name);

}  // namespace stratagem::fuzz
