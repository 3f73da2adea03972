#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/datasets/dataset.h"
#include "tests/temporary_folder.h"

namespace stratagem::datasets::token_file_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string little_endian(const std::vector<std::uint32_t>& numbers, int bytes) {
  std::string text;
  for (const std::uint32_t number : numbers) {
    for (int place = 0; place < bytes; ++place) {
      text += static_cast<char>(number >> static_cast<unsigned>(8 * place) & 0xffU);
    }
  }
  return text;
}

/// llm.c's header: magic number, version, number of tokens, and zeros up to 256 integers.
std::string header(std::uint32_t magic, std::uint32_t version, std::uint32_t tokens) {
  return little_endian({magic, version, tokens}, 4) + std::string(253UL * 4, '\0');
}

class TokenFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  DatasetOptions options(const std::string& name = "tokens.bin") const {
    return {.name = "tokens:" + (folder_ / name).string(), .outputs = 1000, .sequence = 3};
  }

  static void expect_refused(const DatasetOptions& options, const std::string& words) {
    EXPECT_THAT([&] { make_datasets(options, ""); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  }

  const TemporaryFolder folder_;
};

std::vector<int> numbers(std::span<const std::uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST_F(TokenFiles, AreWindowsOfUint16) {
  write("tokens.bin", little_endian({1, 2, 3, 256, 5, 6, 7, 8}, 2));
  const Datasets sets = make_datasets(options(), "");
  ASSERT_EQ(sets.training->size(), 2);
  const SampleFormat& format = sets.training->format();
  EXPECT_EQ(format.kind, SampleKind::tokens);
  EXPECT_EQ(format.token_bytes, 2);
  EXPECT_EQ(format.features, 4);
  EXPECT_EQ(format.classes, 1000);
  EXPECT_THAT(numbers(sets.training->sample(0).bytes), ElementsAre(1, 0, 2, 0, 3, 0, 0, 1));
  EXPECT_THAT(numbers(sets.training->sample(1).bytes), ElementsAre(0, 1, 5, 0, 6, 0, 7, 0));
}

TEST_F(TokenFiles, AreOfUint32WhereTheOptionOrTheHeaderOfLlmcHasIt) {
  const std::string four = little_endian({1, 2, 3, 4}, 4);
  write("tokens.bin", four);
  DatasetOptions wide = options();
  wide.token_dtype = "uint32";
  EXPECT_EQ(make_datasets(wide, "").training->format().token_bytes, 4);
  write("tokens.bin", header(20240801, 7, 4) + four);
  for (const char* dtype : {"auto", "uint32"}) {
    wide.token_dtype = dtype;
    const Datasets sets = make_datasets(wide, "");
    EXPECT_EQ(sets.training->size(), 1);
    EXPECT_EQ(numbers(sets.training->sample(0).bytes)[12], 4);
  }
  wide.token_dtype = "uint16";
  expect_refused(wide, "--token-dtype uint16: the file's header has uint32");
  write("tokens.bin", header(20240520, 1, 4) + little_endian({1, 2, 3, 4}, 2));
  EXPECT_EQ(make_datasets(options(), "").training->format().token_bytes, 2);
  write("tokens.bin", header(20240520, 1, 5) + little_endian({1, 2, 3, 4}, 2));
  expect_refused(options(), "has 8 bytes of tokens, but its header counts 5 tokens, 10 bytes");
}

TEST_F(TokenFiles, InAFolderAreTrainValAndTest) {
  write("train.bin", little_endian(std::vector<std::uint32_t>(31, 1), 2));
  write("val.bin", little_endian(std::vector<std::uint32_t>(7, 2), 2));
  DatasetOptions all = options("");
  all.validation = -1;
  const Datasets sets = make_datasets(all, "");
  EXPECT_EQ(sets.training->size(), 10);
  EXPECT_EQ(sets.validation->size(), 2);
  EXPECT_EQ(sets.test, nullptr);
  all.test = -1;
  expect_refused(all, "--test own: --data tokens:");
}

TEST_F(TokenFiles, OutsideTheVocabularyOrOfPartsOfTokensAreRefused) {
  write("tokens.bin", little_endian({1, 2, 3, 1000}, 2));
  expect_refused(options(), "tokens.bin: has token 1000, the model's vocabulary is 0 to 999");
  write("tokens.bin", "odd");
  expect_refused(options(), "tokens.bin: has 3 bytes, not a multiple of 2-byte tokens");
  write("tokens.bin", little_endian({1, 2, 3}, 2));
  expect_refused(options(), "--sequence-length 3: ");
  write("tokens.bin", "");
  expect_refused(options(), "tokens.bin: is empty");
  expect_refused(options("nowhere.bin"), "nowhere.bin: No such file");
  expect_refused({.name = "tokens"}, "--data tokens: expected tokens:FILE");
}

}  // namespace
}  // namespace stratagem::datasets::token_file_test
