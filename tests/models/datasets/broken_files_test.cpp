// Whatever happens to the bytes of a file of samples: every sample is readable, or one line says
// what is wrong, and never anything else (AddressSanitizer watches). Other mutations:
// --gtest_random_seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>

#include "models/datasets/dataset.h"
#include "tests/temporary_folder.h"

namespace stratagem::datasets::broken_files_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Folders of files that are good, of which one at a time is broken and made good again.
class BrokenFiles : public testing::Test {
 protected:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  char any_byte() { return static_cast<char>(random_()); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  /// Whether the set was read.
  bool is_read(const std::string& kind) const {
    try {
      const Datasets sets =
          make_datasets({.name = kind + ":" + folder_.path().string(), .validation = -1},
                        /*characters=*/"");
      for (const DatasetPointer& set : {sets.training, sets.validation}) {
        for (std::int64_t index = 0; index < set->size(); ++index) expect_whole(*set, index);
      }
      return true;
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      EXPECT_THAT(message, StartsWith("--data"));
      EXPECT_THAT(message, HasSubstr(folder_.path().string()));
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return false;
    }
  }

  const TemporaryFolder folder_;

 private:
  static void expect_whole(const Dataset& set, std::int64_t index) {
    const SampleFormat& format = set.format();
    const Sample sample = set.sample(index);
    ASSERT_EQ(std::ssize(sample.bytes), format.channels * format.height * format.width);
    ASSERT_LT(sample.label, format.classes);
    // Touches both ends of what was handed out.
    ASSERT_LT(sample.bytes.front() + sample.bytes.back(), 511);
  }

  std::mt19937_64 random_{static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed))};
};

std::string big_endian(std::initializer_list<std::uint32_t> numbers) {
  std::string bytes;
  for (const std::uint32_t number : numbers) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xffU);
  }
  return bytes;
}

TEST_F(BrokenFiles, OfMnistAreReadOrRefused) {
  constexpr std::uint32_t count = 3;
  const std::array<std::pair<std::string, std::string>, 4> files = {
      {{"train-images-idx3-ubyte",
        big_endian({0x803, count, 28, 28}) + std::string(count * 784UL, 'p')},
       {"train-labels-idx1-ubyte", big_endian({0x801, count}) + std::string(count, 7)},
       {"t10k-images-idx3-ubyte",
        big_endian({0x803, count, 28, 28}) + std::string(count * 784UL, 'p')},
       {"t10k-labels-idx1-ubyte", big_endian({0x801, count}) + std::string(count, 7)}}};
  for (const auto& [name, bytes] : files) write(name, bytes);
  ASSERT_TRUE(is_read("mnist"));
  int refused = 0;
  constexpr int trials = 3000;
  for (int trial = 0; trial < trials; ++trial) {
    const auto& [name, good] = files.at(below(4));
    std::string bytes = good;
    for (std::size_t change = 0; change <= below(3); ++change) {
      // Half of the changes in the header and the first labels.
      const std::size_t reach =
          below(2) == 0 ? std::min<std::size_t>(bytes.size(), 18) : bytes.size();
      bytes[below(reach)] = any_byte();
    }
    if (below(4) == 0) bytes.resize(below(bytes.size() + 20));
    if (below(16) == 0)
      std::reverse(bytes.begin(), bytes.begin() + std::min<std::ptrdiff_t>(4, std::ssize(bytes)));
    write(name, bytes);
    refused += is_read("mnist") ? 0 : 1;
    write(name, good);
  }
  EXPECT_GT(refused, trials / 4);
  EXPECT_LT(refused, trials);
}

TEST_F(BrokenFiles, OfCifar10AreReadOrRefused) {
  constexpr std::size_t record = 3073;
  constexpr std::size_t size = 10'000 * record;
  // Sparse: all labels and pixels are 0.
  const std::filesystem::path broken = folder_ / "data_batch_3.bin";
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
    write(name, "");
    std::filesystem::resize_file(folder_ / name, size);
  }
  ASSERT_TRUE(is_read("cifar10"));
  int refused = 0;
  constexpr int trials = 75;
  for (int trial = 0; trial < trials; ++trial) {
    std::filesystem::resize_file(broken, 0);
    const bool resized = below(4) == 0;
    std::filesystem::resize_file(broken, resized ? below(2 * size) : size);
    std::fstream file(broken, std::ios::binary | std::ios::in | std::ios::out);
    for (std::size_t change = 0; !resized && change <= below(3); ++change) {
      const std::size_t place = below(10'000) * record + (below(2) == 0 ? 0 : below(record));
      file.seekp(static_cast<std::streamoff>(place)).put(any_byte());
    }
    file.close();
    const bool is_good = is_read("cifar10");
    EXPECT_FALSE(resized && is_good);
    refused += is_good ? 0 : 1;
  }
  EXPECT_GT(refused, trials / 4);
  EXPECT_LT(refused, trials);
}

}  // namespace
}  // namespace stratagem::datasets::broken_files_test
