// Every file of the corpus, good and broken: read or refused in words.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/readers.h"

namespace stratagem::fuzz::corpus_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> bytes_of(const std::string& text, bool is_hexadecimal) {
  if (!is_hexadecimal) return {text.begin(), text.end()};
  std::vector<std::uint8_t> bytes;
  for (std::size_t index = 0; index + 1 < text.size(); index += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(index, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(FuzzCorpus, IsReadOrRefused) {
  for (const Reader& reader : readers()) {
    std::size_t files = 0;
    for (const auto& entry :
         fs::directory_iterator(fs::path(STRATAGEM_TEST_DATA "/fuzz/corpus") / reader.name)) {
      SCOPED_TRACE(entry.path().string());
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      reader.read(bytes_of(text, entry.path().extension() == ".hex"));
      ++files;
    }
    EXPECT_GT(files, 0U) << reader.name;
  }
}

}  // namespace
}  // namespace stratagem::fuzz::corpus_test
