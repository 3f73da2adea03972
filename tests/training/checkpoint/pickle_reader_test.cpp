#include "training/checkpoint/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

namespace stratagem::checkpoint::pickle_reader_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;
using namespace std::string_literals;

std::vector<std::uint8_t> from_digits(const std::string& digits) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t index = 0; index < digits.size(); index += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(index, 2), nullptr, 16)));
  }
  return bytes;
}

json references() {
  return json::parse(
      std::ifstream(STRATAGEM_TEST_DATA "/training/checkpoint/reference_pickles.json"));
}

std::string type_of(const std::string& storage) {
  static const std::map<std::string, std::string> types = {
      {"FloatStorage", "float32"}, {"DoubleStorage", "float64"},    {"HalfStorage", "float16"},
      {"LongStorage", "int64"},    {"BFloat16Storage", "bfloat16"}, {"IntStorage", "int32"},
      {"ShortStorage", "int16"},   {"CharStorage", "int8"},         {"ByteStorage", "uint8"},
      {"BoolStorage", "bool"}};
  const auto found = types.find(storage);
  return found == types.end() ? storage : found->second;
}

json described(const Value& value);

json described(const std::vector<Value>& values) {
  json all = json::array();
  for (const Value& value : values) all.push_back(described(value));
  return all;
}

struct Describe {
  json operator()(None) const { return nullptr; }
  json operator()(bool value) const { return value; }
  json operator()(std::int64_t value) const { return value; }
  json operator()(double value) const { return value; }
  json operator()(const std::string& value) const { return value; }
  json operator()(const List& value) const { return {{"list", described(value.items)}}; }
  json operator()(const Tuple& value) const { return {{"tuple", described(value.items)}}; }
  json operator()(const Dictionary& value) const {
    json items = json::array();
    for (const auto& [key, item] : value.items) {
      items.push_back(json::array({described(key), described(item)}));
    }
    return {{"dictionary", items}};
  }
  json operator()(const PickledTensor& value) const {
    return {{"tensor", value.sizes},
            {"strides", value.strides},
            {"offset", value.offset},
            {"type", type_of(value.storage_type)}};
  }
  json operator()(const Other&) const { return {{"other", true}}; }
};

json described(const Value& value) { return std::visit(Describe(), value.is); }

Value read(const std::string& text) {
  return read_pickle(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void refused(const std::string& text, const char* words) {
  EXPECT_THAT([&] { read(text); }, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
}

TEST(PickleReader, ReadsWhatTorchWrites) {
  const json all = references();
  EXPECT_EQ(all.size(), 11U);
  for (const json& reference : all) {
    const Value value = read_pickle(from_digits(reference.at("pickle")));
    EXPECT_EQ(described(value), reference.at("value")) << reference.at("name");
  }
}

TEST(PickleReader, FindsEntriesByName) {
  for (const json& reference : references()) {
    if (reference.at("name") != "state_dict") continue;
    const Value value = read_pickle(from_digits(reference.at("pickle")));
    ASSERT_NE(value.find("1.running_mean"), nullptr);
    EXPECT_EQ(value.find("1.running_mean")->as<PickledTensor>()->sizes,
              std::vector<std::int64_t>{2});
    EXPECT_EQ(value.find("2.weight"), nullptr);
  }
}

TEST(PickleReader, RunsNothing) {
  refused("cos\nsystem\nX\4\0\0\0true\x85R."s, "os system is not among the names");
  refused("c__builtin__\neval\n.", "__builtin__ eval is not among the names");
  refused("ctorch\nload\n.", "torch load is not among the names");
  refused("ctorch\nFloatStorage\n)R.", "torch FloatStorage is not called");
  refused("cos\n", "ends too early");
  refused("S'text'\n.", "opcode 0x53 is not among those");
  refused("\x80\x04\x8c\1aN.", "opcode 0x8c is not among those");
}

TEST(PickleReader, RefusesWhatNoCheckpointIs) {
  refused("", "ends too early");
  refused("N", "ends too early");
  refused("NN.", "more values than one");
  refused(".", "more values than one, or none");
  refused("(.", "where a value should be");
  refused("t.", "a value that is not there");
  refused("NNs.", "a dictionary should be here");
  refused("}(K\1u.", "a key has no value");
  refused("}]Ns.", "a key that no dictionary takes");
  refused("K\1K\2a.", "a list should be here");
  refused("h\7.", "recalls what was not kept");
  refused("X\xff\xff\xff\x7fgone.", "ends too early");
  refused("K\1K\2\x86Q.", "a persistent identifier that is no storage");
  refused("ccollections\nOrderedDict\nN\x85R.", "made empty");
  refused("N}b.", "only dictionaries have attributes");
}

TEST(PickleReader, RefusesATensorBeyondItsStorage) {
  const auto tensor = [](const std::string& offset, const std::string& sizes,
                         const std::string& strides) {
    std::string text = "ctorch._utils\n_rebuild_tensor_v2\n(";
    text += "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\6tQ"s;
    return text + offset + sizes + strides + "\x89}tR.";
  };
  const auto two = [](char first, char second) {
    return std::string("K") + first + "K" + second + "\x86";
  };
  EXPECT_NO_THROW(read(tensor("K\0"s, two(2, 3), two(3, 1))));
  EXPECT_NO_THROW(read(tensor("K\0"s, two(3, 2), two(1, 3))));
  refused(tensor(std::string("K\1", 2), two(2, 3), two(3, 1)), "reaches beyond its storage");
  refused(tensor("K\0"s, two(2, 4), two(3, 1)), "reaches beyond its storage");
  refused(tensor("K\0"s, two(2, 3), std::string("K\3\x85")), "sizes without strides");
  refused(tensor(std::string("J\xff\xff\xff\xff", 5), two(2, 3), two(3, 1)), "begins before");
  const std::string huge = "\x8a\x08" + std::string(7, '\xff') + "\x7f";
  refused(tensor("K\0"s, huge + huge + "\x86", two(3, 1)), "than there are numbers");
}

TEST(PickleReader, RefusesWhatIsNestedOrRepeatedWithoutEnd) {
  refused("N" + std::string(100, '\x85') + ".", "nested too deeply");
  refused(std::string(100, ']') + std::string(99, 'a') + ".", "nested too deeply");
  refused("]q\0h\0a."s, "nested too deeply");  // a list inside itself
  std::string doubling = "N";
  for (int times = 0; times < 30; ++times) doubling += "q\0h\0\x86"s;
  refused(doubling + ".", "its values take more than 256 MiB");
}

// Each value of a list is small in the file and large in memory.
TEST(PickleReader, MemoryIsLimitedInBytes) {
  const auto recalled = [](const std::string& value, std::size_t times) {
    std::string text = value + "q\0]("s;
    for (std::size_t time = 0; time < times; ++time) text += "h\0"s;
    return text + "e\x86.";
  };
  const std::string storage =
      "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\6tQ"s;
  std::string sizes = "(";
  for (int dimension = 0; dimension < 50'000; ++dimension) sizes += "K\1"s;
  sizes += "t";
  const std::string tensor =
      "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\0"s + sizes + "q\1"s + "h\1\x89}tR"s;
  EXPECT_NO_THROW(read(recalled(tensor, 10)));
  refused(recalled(tensor, 1000), "its values take more than 256 MiB");
  const std::string text = "X\0\0\x10\0"s + std::string(1U << 20U, 'a');
  EXPECT_NO_THROW(read(recalled(text, 10)));
  refused(recalled(text, 1000), "its values take more than 256 MiB");
  refused(std::string(4'000'000, ')') + ".", "its values take more than 256 MiB");
}

// Whatever happens to a byte: a value or one line, and never anything else (ASan watches).
TEST(PickleReader, BrokenFilesAreReadOrRefused) {
  std::mt19937 random(static_cast<unsigned>(GTEST_FLAG_GET(random_seed)));
  for (const json& reference : references()) {
    const auto good = from_digits(reference.at("pickle"));
    for (int trial = 0; trial < 2000; ++trial) {
      auto broken = good;
      for (unsigned change = 0; change <= random() % 3; ++change) {
        broken[random() % broken.size()] = static_cast<std::uint8_t>(random());
      }
      if (random() % 4 == 0) broken.resize(random() % broken.size());
      try {
        described(read_pickle(broken)).dump(-1, ' ', false, json::error_handler_t::replace);
      } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr("pickle, byte "));
      }
    }
  }
}

}  // namespace
}  // namespace stratagem::checkpoint::pickle_reader_test
