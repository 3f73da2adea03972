#include "models/datasets/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "tests/temporary_folder.h"

namespace stratagem::datasets::dataset_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::string_view characters = "to be, or not to be, that is the question";

Datasets made(DatasetOptions options) { return make_datasets(options, characters); }

/// A folder of files of the test's own.
class DatasetFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  static std::string big_endian(std::initializer_list<std::uint32_t> numbers) {
    std::string bytes;
    for (const std::uint32_t number : numbers) {
      for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xffU);
    }
    return bytes;
  }

  /// Sample n is of class n % 10, and all its pixels are n.
  void write_mnist(const std::string& prefix, int count) const {
    std::string images = big_endian({0x803, static_cast<std::uint32_t>(count), 28, 28});
    std::string labels = big_endian({0x801, static_cast<std::uint32_t>(count)});
    for (int number = 0; number < count; ++number) {
      images += std::string(28UL * 28, static_cast<char>(number));
      labels += static_cast<char>(number % 10);
    }
    write(prefix + "-images-idx3-ubyte", images);
    write(prefix + "-labels-idx1-ubyte", labels);
  }

  void write_cifar10(const std::string& name, char first_pixel) const {
    std::string bytes;
    for (int number = 0; number < 10'000; ++number) {
      bytes += static_cast<char>(number % 10);
      bytes += std::string(3072, first_pixel);
    }
    write(name, bytes);
  }

  auto refusal(const std::string& kind) const {
    return [this, kind] { made({.name = kind + ":" + folder_.path().string()}); };
  }

  const TemporaryFolder folder_;
};

TEST_F(DatasetFiles, MnistIsRead) {
  write_mnist("train", 30);
  write_mnist("t10k", 20);
  const Datasets sets =
      made({.name = "mnist:" + folder_.path().string(), .validation = 0.2, .test = -1});
  EXPECT_EQ(sets.training->size(), 24);
  EXPECT_EQ(sets.validation->size(), 6);
  EXPECT_EQ(sets.test->size(), 20);
  const Sample sample = sets.validation->sample(5);
  EXPECT_EQ(sample.label, 9);
  ASSERT_EQ(sample.bytes.size(), 784U);
  EXPECT_EQ(sample.bytes.back(), 29);
  EXPECT_EQ(sets.training->format().height, 28);
}

TEST_F(DatasetFiles, ABadFileOfMnistIsNamedWithWhatIsWrong) {
  write_mnist("train", 30);
  EXPECT_THAT(refusal("mnist"),
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("t10k-images-idx3-ubyte: "), HasSubstr("No such file"))));
  write("t10k-images-idx3-ubyte.gz", "packed");
  EXPECT_THAT(refusal("mnist"), ThrowsMessage<std::invalid_argument>(HasSubstr("gunzip ")));
  write_mnist("t10k", 20);
  write("train-labels-idx1-ubyte", big_endian({0x801, 29}) + std::string(29, 1));
  EXPECT_THAT(refusal("mnist"), ThrowsMessage<std::invalid_argument>(HasSubstr(
                                    "train-labels-idx1-ubyte: the number of labels is 29")));
  write("train-labels-idx1-ubyte", big_endian({0x801, 30}) + std::string(30, 11));
  EXPECT_THAT(refusal("mnist"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("sample 0 has label 11")));
  write("train-images-idx3-ubyte", big_endian({0x803, 30, 28, 28}) + std::string(30, 11));
  EXPECT_THAT(refusal("mnist"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("its size in bytes is 46")));
  write("train-images-idx3-ubyte", std::string("\x03\x08\x00\x00", 4) + std::string(30, 0));
  EXPECT_THAT(refusal("mnist"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("its magic number is 50855936")));
  write("train-images-idx3-ubyte", "\x01");
  EXPECT_THAT(refusal("mnist"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("ends within its header")));
  write("train-images-idx3-ubyte", "");
  EXPECT_THAT(refusal("mnist"), ThrowsMessage<std::invalid_argument>(HasSubstr("is empty")));
}

TEST_F(DatasetFiles, Cifar10IsRead) {
  for (const char number : {'1', '2', '3', '4', '5'}) {
    write_cifar10(std::string("data_batch_") + number + ".bin", number);
  }
  write_cifar10("test_batch.bin", 't');
  const Datasets sets = made({.name = "cifar10:" + folder_.path().string(), .validation = -1});
  EXPECT_EQ(sets.training->size(), 50'000);
  EXPECT_EQ(sets.training->sample(39'999).bytes.front(), '4');
  EXPECT_EQ(sets.training->sample(40'003).bytes.front(), '5');
  EXPECT_EQ(sets.training->sample(40'003).label, 3);
  EXPECT_EQ(sets.validation->sample(0).bytes.size(), 3072U);
  EXPECT_EQ(sets.test, nullptr);
  write("data_batch_3.bin", "short");
  EXPECT_THAT(refusal("cifar10"), ThrowsMessage<std::invalid_argument>(HasSubstr(
                                      "data_batch_3.bin: has 5 bytes, expected 30730000")));
  write("data_batch_3.bin", std::string(30'730'000, 12));
  EXPECT_THAT(refusal("cifar10"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("record 0 has label 12")));
}

TEST(Dataset, DrawnPartsHaveSamplesOfTheirOwn) {
  const DatasetOptions options{
      .name = "random", .samples = 50, .features = 3, .validation = -1, .test = -1};
  const Datasets sets = made(options);
  EXPECT_EQ(sets.validation->size(), 50);
  std::vector<float> firsts;
  for (const auto& part : {sets.training, sets.validation, sets.test}) {
    for (std::int64_t index = 0; index < part->size(); ++index) {
      firsts.push_back(part->sample(index).values.front());
      EXPECT_GE(firsts.back(), 0);
      EXPECT_LT(firsts.back(), 1);
    }
  }
  std::ranges::sort(firsts);
  EXPECT_EQ(std::ranges::adjacent_find(firsts), firsts.end());
  // More samples leave the first ones as they are.
  const Datasets more = made({.name = "random", .samples = 90, .features = 3});
  EXPECT_TRUE(
      std::ranges::equal(more.training->sample(49).values, sets.training->sample(49).values));
}

TEST(Dataset, RandomTargetsAreClassesOrRealNumbers) {
  const Datasets classes = made({.name = "random", .samples = 500, .outputs = 4});
  for (std::int64_t index = 0; index < 500; ++index) {
    EXPECT_LT(classes.training->sample(index).label, 4);
  }
  const Datasets real = made({.name = "random", .outputs = 4, .real_targets = true});
  EXPECT_EQ(real.training->sample(7).targets.size(), 4U);
  EXPECT_EQ(real.training->format().classes, 0);
}

TEST(Dataset, RandomImagesAreAFunctionOfSeedAndNumber) {
  const DatasetOptions options{.name = "random",
                               .samples = 200,
                               .features = 3,
                               .image_size = 20,
                               .outputs = 4,
                               .validation = -1};
  const Datasets sets = made(options);
  const SampleFormat& format = sets.training->format();
  EXPECT_EQ(format.kind, SampleKind::image);
  EXPECT_EQ(format.channels, 3);
  EXPECT_EQ(format.height, 20);
  const Datasets again = made(options);
  std::array<int, 4> counts{};
  for (std::int64_t index = 0; index < 200; ++index) {
    const Sample sample = sets.training->sample(index);
    ++counts.at(static_cast<std::size_t>(sample.label));
    ASSERT_EQ(sample.bytes.size(), 1200U);
    EXPECT_TRUE(std::ranges::equal(sample.bytes, again.training->sample(index).bytes));
  }
  EXPECT_GE(*std::ranges::min_element(counts), 20);
  const auto first = sets.training->sample(0).bytes;
  EXPECT_FALSE(std::ranges::equal(first, sets.training->sample(1).bytes));
  EXPECT_FALSE(std::ranges::equal(first, sets.validation->sample(0).bytes));
}

TEST(Dataset, ShapesAreOfAllClassesAndNoTwoAlike) {
  const Datasets sets = made({.name = "shapes", .samples = 300});
  std::array<int, 10> counts{};
  for (std::int64_t index = 0; index < 300; ++index) {
    ++counts.at(static_cast<std::size_t>(sets.training->sample(index).label));
  }
  EXPECT_GE(*std::ranges::min_element(counts), 10);
  const auto first = sets.training->sample(0).bytes;
  EXPECT_FALSE(std::ranges::equal(first, sets.training->sample(1).bytes));
  EXPECT_TRUE(
      std::ranges::equal(first, made({.name = "shapes", .samples = 3}).training->sample(0).bytes));
  EXPECT_FALSE(std::ranges::equal(
      first, made({.name = "shapes", .samples = 3, .seed = 1}).training->sample(0).bytes));
}

TEST(Dataset, WindowsOfATextBeginWithTheLastTokenOfTheOneBefore) {
  const Datasets sets = made({.name = "text", .sequence = 5});
  EXPECT_EQ(sets.training->size(), 8);
  EXPECT_EQ(sets.training->sample(0).bytes.size(), 6U);
  EXPECT_EQ(sets.training->sample(0).bytes.back(), sets.training->sample(1).bytes.front());
  EXPECT_THAT([] { made({.name = "text", .sequence = 41}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("--sequence-length 41")));
}

TEST(Dataset, PartsOfATrainingSetHaveNoSampleInCommon) {
  const Datasets sets = made({.name = "random", .samples = 10, .validation = 0.3, .test = 0.2});
  EXPECT_EQ(sets.training->size(), 5);
  EXPECT_EQ(sets.validation->size(), 3);
  EXPECT_EQ(sets.test->size(), 2);
  const Datasets whole = made({.name = "random", .samples = 10});
  const auto same = [](const Sample& one, const Sample& two) {
    return std::ranges::equal(one.values, two.values);
  };
  EXPECT_TRUE(same(sets.validation->sample(0), whole.training->sample(5)));
  EXPECT_TRUE(same(sets.test->sample(1), whole.training->sample(9)));
}

TEST(Dataset, WhatCannotBeIsRefusedInOneLine) {
  const auto refused = [](DatasetOptions options, const char* words) {
    EXPECT_THAT([&] { made(options); }, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refused({.name = "cifar100"}, "--data cifar100: unknown");
  refused({.name = "cifar100:x"}, "--data cifar100:x: unknown");
  refused({.name = "random", .samples = 0}, "--samples 0");
  refused({.name = "random", .samples = 10, .validation = 0.01},
          "--validation 0.01: selects none of 10 samples");
  refused({.name = "random", .samples = 10, .validation = 0.5, .test = 0.5}, "leave none of");
  refused({.name = "text", .sequence = 5, .validation = -1},
          "--validation own: --data text has no such split");
}

}  // namespace
}  // namespace stratagem::datasets::dataset_test
