// Token files of nanoGPT and llm.c: unsigned integers, the least significant byte first, mapped
// into memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "models/datasets/mapped_file.h"
#include "models/datasets/registry.h"
#include "models/datasets/token_windows.h"

namespace stratagem::datasets {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_tokens(const fs::path& file, const std::string& reason) {
  throw std::invalid_argument(fmt::format("--data: {}: {}", file.string(), reason));
}

template <class Unsigned>
Unsigned little_endian(const std::uint8_t* bytes) {
  Unsigned value = 0;
  for (std::size_t place = 0; place < sizeof(Unsigned); ++place) {
    value = static_cast<Unsigned>(value | static_cast<Unsigned>(bytes[place]) << 8U * place);
  }
  return value;
}

/// The header of llm.c's scripts before the tokens: 256 integers of 4 bytes, of which the first
/// three are a magic number, the version and the number of tokens.
struct LlmcHeader {
  static constexpr std::size_t bytes = 256 * 4;
  std::int64_t token_bytes;
  std::size_t tokens;
};

std::optional<LlmcHeader> llmc_header(std::span<const std::uint8_t> bytes) {
  constexpr std::uint32_t of_uint16 = 20240520;
  constexpr std::uint32_t of_uint32 = 20240801;
  if (bytes.size() < LlmcHeader::bytes) return std::nullopt;
  const auto magic = little_endian<std::uint32_t>(bytes.data());
  const auto version = little_endian<std::uint32_t>(bytes.data() + 4);
  const bool wide = magic == of_uint32 && version == 7;
  if (!wide && (magic != of_uint16 || version != 1)) return std::nullopt;
  return LlmcHeader{.token_bytes = wide ? 4 : 2,
                    .tokens = little_endian<std::uint32_t>(bytes.data() + 8)};
}

/// Returns the tokens of a file, without llm.c's header if it has one.
TokenRow tokens_in(const MappedFile& file, const std::string& dtype) {
  TokenRow row{.bytes = file.bytes(), .token_bytes = dtype == "uint32" ? 4 : 2};
  if (const auto header = llmc_header(file.bytes())) {
    const std::string found = header->token_bytes == 4 ? "uint32" : "uint16";
    if (dtype != "auto" && dtype != found) {
      refuse_tokens(file.path(),
                    fmt::format("--token-dtype {}: the file's header has {}", dtype, found));
    }
    row.bytes = row.bytes.subspan(LlmcHeader::bytes);
    row.token_bytes = header->token_bytes;
    const std::size_t wanted = header->tokens * static_cast<std::size_t>(row.token_bytes);
    if (row.bytes.size() != wanted) {
      refuse_tokens(file.path(), fmt::format("has {} bytes of tokens, but its header counts {} "
                                             "tokens, {} bytes",
                                             row.bytes.size(), header->tokens, wanted));
    }
  }
  if (row.bytes.size() % static_cast<std::size_t>(row.token_bytes) != 0) {
    refuse_tokens(file.path(), fmt::format("has {} bytes, not a multiple of {}-byte tokens",
                                           row.bytes.size(), row.token_bytes));
  }
  return row;
}

template <class Unsigned>
std::uint32_t largest_token(std::span<const std::uint8_t> bytes) {
  Unsigned largest = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Unsigned)) {
    largest = std::max(largest, little_endian<Unsigned>(bytes.data() + at));
  }
  return largest;
}

void require_vocabulary(const fs::path& file, const TokenRow& row) {
  const std::uint32_t largest = row.token_bytes == 4 ? largest_token<std::uint32_t>(row.bytes)
                                                     : largest_token<std::uint16_t>(row.bytes);
  if (largest < row.vocabulary) return;
  refuse_tokens(
      file, fmt::format("has token {}, the model's vocabulary is 0 to {}; try "
                        "--token-dtype {}",
                        largest, row.vocabulary - 1, row.token_bytes == 4 ? "uint16" : "uint32"));
}

DatasetPointer token_file(const fs::path& path, const DatasetOptions& options) {
  const auto file = std::make_shared<MappedFile>(path);
  TokenRow row = tokens_in(*file, options.token_dtype);
  row.vocabulary = options.outputs;
  row.owner = file;
  require_vocabulary(path, row);
  return token_windows(row, options.sequence, path.string());
}

/// Reads a file, or a folder of train.bin and, on request, val.bin and test.bin.
Datasets tokens(const DatasetOptions& options) {
  const fs::path path = options.path;
  if (!fs::is_directory(path)) {
    return {.training = token_file(path, options), .validation = nullptr, .test = nullptr};
  }
  const bool asked = options.validation < 0 || options.test < 0;
  const auto part = [&](const char* name) {
    const fs::path file = path / name;
    return asked && fs::exists(file) ? token_file(file, options) : nullptr;
  };
  return {.training = token_file(path / "train.bin", options),
          .validation = part("val.bin"),
          .test = part("test.bin")};
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "tokens",
    .argument = "FILE",
    .summary = "a file of uint16 or uint32 tokens, or a folder of train.bin, val.bin and test.bin",
    .kinds = {stratagem::datasets::SampleKind::tokens},
    .make = stratagem::datasets::tokens});
