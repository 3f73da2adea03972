#include "training/checkpoint/saved_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "training/checkpoint/model_part.h"

namespace stratagem::checkpoint::saved_file_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t plenty = 1U << 20U;

json references() {
  return json::parse(
      std::ifstream(STRATAGEM_TEST_DATA "/training/checkpoint/reference_files.json"));
}

Bytes from_digits(const std::string& digits) {
  Bytes bytes;
  for (std::size_t index = 0; index < digits.size(); index += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(index, 2), nullptr, 16)));
  }
  return bytes;
}

Bytes file_of(const std::string& name) {
  for (const json& reference : references()) {
    if (reference.at("name") == name) return from_digits(reference.at("file"));
  }
  throw std::logic_error(name);
}

TEST(SavedFile, ReadsBothFormatsAndCompressedArchives) {
  const json all = references();
  EXPECT_EQ(all.size(), 3U);
  for (const json& reference : all) {
    const Bytes bytes = from_digits(reference.at("file"));
    SavedFile file(bytes);
    for (const auto& [name, storage] : reference.at("storages").items()) {
      const Value* found = file.value().find(name);
      ASSERT_NE(found, nullptr) << name;
      const auto read = file.storage(*found->as<PickledTensor>(), plenty);
      EXPECT_EQ(Bytes(read.begin(), read.end()), storage.get<Bytes>())
          << reference.at("name") << " " << name;
    }
  }
}

/// Without checksums, so that a changed byte reaches the readers behind them.
Bytes without_checksums(Bytes archive) {
  constexpr std::array<std::uint8_t, 4> entry = {'P', 'K', 1, 2};  // of the directory
  for (auto at = archive.begin();; at += std::ssize(entry)) {
    at = std::search(at, archive.end(), entry.begin(), entry.end());
    if (at == archive.end()) return archive;
    std::fill_n(at + 16, 4, std::uint8_t{0});
  }
}

/// What a caller does with a file: reads all of it.
void read_all(const Bytes& bytes) {
  SavedFile file(bytes);
  const auto* values = file.value().as<Dictionary>();
  if (values == nullptr) return;
  for (const auto& [name, value] : values->items) {
    if (const auto* tensor = value.as<PickledTensor>()) file.storage(*tensor, plenty);
  }
}

TEST(SavedFile, EveryDamagedTensorIsRefused) {
  const Bytes good = file_of("zip");
  const auto weight = zip_records(good).at("archive/data/0").bytes;
  const auto first = static_cast<std::size_t>(weight.data() - good.data());
  for (std::size_t bit = 0; bit < 8 * weight.size(); ++bit) {
    Bytes broken = good;
    broken[first + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_THAT([&] { read_all(broken); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("is damaged")))
        << "bit " << bit;
  }
}

TEST(SavedFile, ARecordWithoutAChecksumIsRead) {
  Bytes bytes = without_checksums(file_of("zip"));
  const auto first = zip_records(bytes).at("archive/data/0").bytes.data() - bytes.data();
  read_all(bytes);
  bytes[static_cast<std::size_t>(first)] ^= 1U;
  read_all(bytes);
}

// Whatever happens to a byte: values or one line, and never anything else (ASan watches).
TEST(SavedFile, BrokenFilesAreReadOrRefused) {
  std::mt19937 random(static_cast<unsigned>(GTEST_FLAG_GET(random_seed)));
  for (const json& reference : references()) {
    const Bytes good = without_checksums(from_digits(reference.at("file")));
    for (int trial = 0; trial < 2000; ++trial) {
      Bytes broken = good;
      for (unsigned change = 0; change <= random() % 3; ++change) {
        broken[random() % broken.size()] = static_cast<std::uint8_t>(random());
      }
      if (random() % 4 == 0) broken.resize(random() % broken.size());
      try {
        read_all(broken);
      } catch (const std::invalid_argument& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
}

TEST(SavedFile, WhatIsCutIsRefused) {
  for (const json& reference : references()) {
    const Bytes good = from_digits(reference.at("file"));
    for (std::size_t size = 0; size < good.size(); ++size) {
      const Bytes part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_THROW(read_all(part), std::invalid_argument)
          << reference.at("name") << ", " << size << " of " << good.size() << " bytes";
    }
  }
}

/// Writes a number of 32 bits over each place where another one stands.
void replace_words(Bytes& bytes, std::uint32_t was, std::uint32_t now) {
  for (std::size_t at = 0; at + 4 <= bytes.size(); ++at) {
    std::uint32_t word = 0;
    for (unsigned byte = 0; byte < 4; ++byte) word |= std::uint32_t{bytes[at + byte]} << 8 * byte;
    if (word != was) continue;
    for (unsigned byte = 0; byte < 4; ++byte) {
      bytes[at + byte] = static_cast<std::uint8_t>(now >> 8 * byte);
    }
  }
}

TEST(SavedFile, NothingIsInflatedBeforeItsSizeIsAllowed) {
  Bytes bytes = file_of("deflated");
  SavedFile file(bytes);
  const auto* weight = file.value().find("weight")->as<PickledTensor>();
  EXPECT_EQ(file.storage(*weight, 24).size(), 24U);
  SavedFile again(bytes);
  EXPECT_THAT([&] { again.storage(*weight, 23); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("24 bytes, more than 23")));
  const auto records = zip_records(bytes);
  const auto size = static_cast<std::uint32_t>(records.at("archive/data.pkl").size);
  replace_words(bytes, size, 0x7fffffff);
  EXPECT_THAT([&] { SavedFile{bytes}; },
              ThrowsMessage<std::invalid_argument>(HasSubstr("2147483647 bytes, more than")));
}

TEST(SavedFile, NamesWhatElseAFileIs) {
  const auto refused = [](const Bytes& bytes, const char* words) {
    EXPECT_THAT([&] { SavedFile{bytes}; }, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refused({'h', 'e', 'l', 'l', 'o'}, "is not a complete file of torch.save or of stratagem train");
  Bytes big_endian = without_checksums(file_of("zip"));
  const std::string order = "little";
  for (auto at = big_endian.begin(); at != big_endian.end();) {
    at = std::search(at, big_endian.end(), order.begin(), order.end());
    if (at != big_endian.end()) *at = 'L';
  }
  refused(big_endian, "is from a big-endian machine");
}

Value tensor() { return {PickledTensor()}; }

Value dictionary_of(const std::vector<std::string>& names) {
  Dictionary dictionary;
  for (const std::string& name : names) dictionary.items.push_back({{name}, tensor()});
  return {dictionary};
}

Value under(const std::string& key, Value value) {
  return {Dictionary{{{{key}, std::move(value)}, {{std::string("epoch")}, {std::int64_t{3}}}}}};
}

const std::vector<std::string> wanted = {"0.weight", "0.bias", "1.num_batches_tracked"};

std::string refusal(const Value& whole) {
  try {
    model_tensors(whole, wanted);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelTensors, AreFoundUnderUsualKeysAndPrefixes) {
  const auto named = [](const std::string& prefix) {
    return dictionary_of({prefix + "0.weight", prefix + "0.bias"});
  };
  EXPECT_EQ(model_tensors(dictionary_of(wanted), wanted).size(), 3U);
  EXPECT_EQ(model_tensors(named(""), wanted).size(), 2U) << "without num_batches_tracked";
  for (const char* key : {"model", "state_dict", "model_state_dict", "module"}) {
    EXPECT_EQ(model_tensors(under(key, named("")), wanted).size(), 2U) << key;
  }
  for (const char* prefix :
       {"module.", "model.", "_orig_mod.", "module._orig_mod.", "net.inner."}) {
    EXPECT_EQ(model_tensors(named(prefix), wanted).size(), 2U) << prefix;
    EXPECT_EQ(model_tensors(under("state_dict", named(prefix)), wanted).size(), 2U) << prefix;
  }
  EXPECT_EQ(model_tensors(dictionary_of({"0._orig_mod.weight", "0.bias"}), wanted).size(), 2U);
}

TEST(ModelTensors, ARefusalNamesWhatIsThere) {
  EXPECT_EQ(refusal(dictionary_of({"a", "b", "c", "d"})),
            "is of another model: it has no tensor \"0.weight\"; it has \"a\", \"b\", \"c\" and 1 "
            "more");
  EXPECT_EQ(refusal(under("state_dict", dictionary_of({"0.weight"}))),
            "is of another model: it has no tensor \"0.bias\" under \"state_dict\"; it has "
            "\"0.weight\"");
  EXPECT_EQ(refusal(under("ema", dictionary_of(wanted))),
            "is of another model: it has no tensor \"0.weight\"; it has \"ema\", \"epoch\"");
  EXPECT_EQ(refusal(dictionary_of({"0.weight", "0.bias", "2.weight"})),
            "is of another model: it has 3 entries, expected 2; the model has no \"2.weight\"");
  EXPECT_EQ(refusal(dictionary_of({"module.0.weight", "0.bias"})),
            "is of another model: it has no tensor \"module.0.bias\"; it has \"0.bias\", "
            "\"module.0.weight\"");
  EXPECT_EQ(
      refusal({std::int64_t{7}}),
      "is of another model: it has no tensor \"0.weight\"; it is not a dictionary of tensors");
}

TEST(ModelTensors, TwoModelsAreAmbiguous) {
  const Value whole = {Dictionary{{{{std::string("model")}, dictionary_of(wanted)},
                                   {{std::string("state_dict")}, dictionary_of(wanted)}}}};
  EXPECT_EQ(refusal(whole),
            "has two models under \"model\" and under \"state_dict\"; save only one");
  EXPECT_THAT(refusal(dictionary_of({"_orig_mod.0.weight", "0.weight", "0.bias"})),
              HasSubstr("two of its tensors have one name without wrapper prefixes"));
}

}  // namespace
}  // namespace stratagem::checkpoint::saved_file_test
