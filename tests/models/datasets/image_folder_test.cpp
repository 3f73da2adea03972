// Folders of images: pixels against Pillow and torchvision (make_image_reference.py), classes as
// torchvision's ImageFolder numbers them, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "models/datasets/dataset.h"
#include "tests/temporary_folder.h"

namespace stratagem::datasets::image_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

const nlohmann::json& reference() {
  static const nlohmann::json cases = nlohmann::json::parse(
      std::ifstream(std::string(STRATAGEM_TEST_DATA) + "/models/datasets/reference_images.json"));
  return cases;
}

std::string file_of(const std::string& name) {
  for (const auto& each : reference()) {
    if (each.at("name") == name) return from_hex(each.at("file"));
  }
  throw std::logic_error(name);
}

class ImageFolders : public testing::Test {
 protected:
  void write(const fs::path& name, const std::string& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  Datasets made(std::int64_t side = 8, std::int64_t channels = 3) const {
    return make_datasets({.name = "images:" + folder_.path().string(),
                          .features = channels,
                          .image_size = side,
                          .validation = own_validation_,
                          .test = own_test_},
                         "");
  }

  auto making() const {
    return [this] { made(); };
  }
  auto reading(std::int64_t index) const {
    return [this, index] { made().training->sample(index); };
  }

  std::vector<std::int64_t> labels(const DatasetPointer& set) const {
    std::vector<std::int64_t> found;
    for (std::int64_t index = 0; index < set->size(); ++index) {
      found.push_back(set->sample(index).label);
    }
    return found;
  }

  const TemporaryFolder folder_;
  double own_validation_ = 0;
  double own_test_ = 0;
};

/// [channels, side, side] of the reference's [side, side, channels].
std::vector<int> planes(const std::string& pixels, std::size_t channels) {
  std::vector<int> values;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t at = channel; at < pixels.size(); at += channels) {
      values.push_back(static_cast<unsigned char>(pixels[at]));
    }
  }
  return values;
}

int largest_difference(std::span<const std::uint8_t> found, const std::vector<int>& expected) {
  int largest = found.size() == expected.size() ? 0 : 256;
  for (std::size_t at = 0; at < std::min(found.size(), expected.size()); ++at) {
    largest = std::max(largest, std::abs(found[at] - expected[at]));
  }
  return largest;
}

TEST_F(ImageFolders, PixelsAreThoseOfTorchvision) {
  for (const auto& each : reference()) {
    const std::string name = each.at("name");
    SCOPED_TRACE(name);
    write("class/" + name, from_hex(each.at("file")));
    const std::int64_t side = each.at("side");
    // Decoders of JPEG may round differently; resizing and PNG are the same to the bit.
    const int tolerance = name.ends_with(".jpg") ? 2 : 0;
    for (const auto& [key, channels] : {std::pair{"square", 3}, std::pair{"grey", 1}}) {
      const Datasets sets = made(side, channels);
      const Sample sample = sets.training->sample(0);
      EXPECT_EQ(sets.training->format().channels, channels);
      EXPECT_LE(largest_difference(sample.bytes, planes(from_hex(each.at(key)),
                                                        static_cast<std::size_t>(channels))),
                tolerance)
          << key;
    }
    fs::remove(folder_ / "class" / name);
  }
}

TEST_F(ImageFolders, ClassesAreNumberedByNameAndFilesSortedByFolderAndName) {
  const std::string png = file_of("same.png");
  for (const char* name :
       {"dog/b.PNG", "cat/later/a.png", "cat/b.png", "cat/.hidden", "Zoo/a.jpeg", ".git/c/a.png"}) {
    write(name, std::string(name).ends_with("jpeg") ? file_of("grey.jpg") : png);
  }
  write("readme.txt", "beside the classes nothing is read");
  const Datasets sets = made();
  EXPECT_THAT(labels(sets.training), ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(sets.training->format().classes, 3);
  EXPECT_TRUE(sets.training->format().decoded);
}

TEST_F(ImageFolders, FoldersTrainValAndTestAreTheSetsOwnParts) {
  const std::string png = file_of("same.png");
  for (const char* name : {"train/a/1.png", "train/b/1.png", "train/b/2.png", "val/b/1.png",
                           "test/a/1.png", "test/b/1.png"}) {
    write(name, png);
  }
  own_validation_ = own_test_ = -1;
  const Datasets sets = made();
  EXPECT_THAT(labels(sets.training), ElementsAre(0, 1, 1));
  EXPECT_THAT(labels(sets.validation), ElementsAre(1));
  EXPECT_THAT(labels(sets.test), ElementsAre(0, 1));
  write("val/c/1.png", png);
  EXPECT_THAT(making(), ThrowsMessage<std::invalid_argument>(
                            AllOf(HasSubstr("/val/c"), HasSubstr("not a class of the training"))));
}

TEST_F(ImageFolders, AFolderNamedTrainMayBeAClass) {
  for (const char* name : {"bus/1.png", "train/1.png"}) write(name, file_of("same.png"));
  EXPECT_THAT(labels(made().training), ElementsAre(0, 1));
  own_validation_ = -1;
  EXPECT_THAT(making(), ThrowsMessage<std::invalid_argument>(HasSubstr("--validation own")));
}

TEST_F(ImageFolders, WhatIsNotAFolderOfImagesIsRefused) {
  const auto refused = [this](const char* words) {
    EXPECT_THAT(making(), ThrowsMessage<std::invalid_argument>(
                              AllOf(HasSubstr(folder_.path().string()), HasSubstr(words))));
  };
  refused("has no subfolders");
  write("cat/a.png", file_of("same.png"));
  fs::create_directories(folder_ / "dog");
  refused("/dog: has no images");
  write("dog/a.gif", "GIF89a");
  refused("/dog/a.gif: expected images in .png, .jpg or .jpeg");
  EXPECT_THAT([] { make_datasets({.name = "images:nowhere", .image_size = 8}, ""); },
              ThrowsMessage<std::invalid_argument>("--data: nowhere: no such folder; expected one "
                                                   "with a subfolder for each class"));
}

TEST_F(ImageFolders, ADamagedFileIsNamed) {
  const auto refused = [this](const std::string& bytes, const char* words) {
    write("cat/a.png", bytes);
    EXPECT_THAT(reading(0), ThrowsMessage<std::invalid_argument>(
                                AllOf(HasSubstr("/cat/a.png: "), HasSubstr(words))));
  };
  refused("", "is empty");
  refused("GIF89a", "is neither a PNG nor a JPEG file");
  const std::string png = file_of("landscape.png");
  const std::string jpeg = file_of("colour.jpg");
  const std::string progressive = file_of("progressive.jpg");
  refused(png.substr(0, 20), "is a damaged PNG file");
  refused(png.substr(0, png.size() / 2), "is a damaged PNG file");
  refused(jpeg.substr(0, jpeg.size() - 2), "is a damaged JPEG file");
  refused(jpeg.substr(0, jpeg.size() / 2), "is a damaged JPEG file");
  refused(jpeg.substr(0, 10), "is a damaged JPEG file");
  refused(progressive.substr(0, progressive.size() - 60), "is a damaged JPEG file");
  // A PNG of 100,000 x 100,000 pixels in its header.
  std::string giant = png;
  giant.replace(16, 8, std::string("\x00\x01\x86\xa0\x00\x01\x86\xa0", 8));
  write("cat/a.png", giant);
  EXPECT_THAT(reading(0), testing::Throws<std::invalid_argument>());
}

// Whatever happens to a file's bytes, the picture is whole or the file is named.
TEST_F(ImageFolders, AnyBytesAreReadOrRefused) {
  std::uint32_t state = static_cast<std::uint32_t>(GTEST_FLAG_GET(random_seed)) | 1U;
  const auto below = [&state](std::size_t limit) {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::size_t>(state >> 8U) % limit;
  };
  int refused = 0;
  constexpr int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    const auto& each = reference()[below(reference().size())];
    std::string bytes = from_hex(each.at("file"));
    for (std::size_t change = 0; change <= below(3); ++change) {
      bytes[below(bytes.size())] = static_cast<char>(below(256));
    }
    write("cat/a.png", bytes);
    try {
      EXPECT_EQ(made().training->sample(0).bytes.size(), 192U);
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("/cat/a.png: "));
      ++refused;
    }
  }
  EXPECT_GT(refused, trials / 8);
  EXPECT_LT(refused, trials);
}

}  // namespace
}  // namespace stratagem::datasets::image_folder_test
