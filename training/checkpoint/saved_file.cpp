#include "training/checkpoint/saved_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "training/checkpoint/pickle_reader.h"

namespace stratagem::checkpoint {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::array<std::uint8_t, 4> archive_start = {'P', 'K', 3, 4};
/// The pickle of 0x1950a86a20f9469cfc6c, except its protocol: torch.serialization's MAGIC_NUMBER.
constexpr std::array<std::uint8_t, 13> magic_number = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                                       0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
constexpr std::string_view pickle_name = "data.pkl";

bool starts_with(Bytes bytes, Bytes start) {
  return bytes.size() >= start.size() && std::ranges::equal(bytes.first(start.size()), start);
}

struct StorageType {
  std::string_view name;
  std::size_t element_size;  // in bytes
};
constexpr std::array storage_types = {
    StorageType{"FloatStorage", 4},         StorageType{"DoubleStorage", 8},
    StorageType{"HalfStorage", 2},          StorageType{"BFloat16Storage", 2},
    StorageType{"LongStorage", 8},          StorageType{"IntStorage", 4},
    StorageType{"ShortStorage", 2},         StorageType{"CharStorage", 1},
    StorageType{"ByteStorage", 1},          StorageType{"BoolStorage", 1},
    StorageType{"UntypedStorage", 1},       StorageType{"ComplexFloatStorage", 8},
    StorageType{"ComplexDoubleStorage", 16}};

[[noreturn]] void unreadable(const std::string& reason) { throw std::invalid_argument(reason); }

std::uint64_t size_of(std::int64_t elements, const std::string& type) {
  const auto found = std::ranges::find(storage_types, std::string_view(type), &StorageType::name);
  if (found == storage_types.end()) unreadable(fmt::format("storage type {} is unknown", type));
  std::uint64_t size = 0;
  if (elements < 0 ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(elements), found->element_size, &size)) {
    unreadable("a storage of more bytes than there are numbers");
  }
  return size;
}

/// Collects the type of each storage that holds a tensor.
void collect_types(const Value& value, std::map<std::string, std::string>& types) {
  if (const auto* tensor = value.as<PickledTensor>()) {
    types.emplace(tensor->storage, tensor->storage_type);
  }
  if (const auto* list = value.as<List>()) {
    for (const Value& item : list->items) collect_types(item, types);
  }
  if (const auto* tuple = value.as<Tuple>()) {
    for (const Value& item : tuple->items) collect_types(item, types);
  }
  if (const auto* dictionary = value.as<Dictionary>()) {
    for (const auto& [key, item] : dictionary->items) collect_types(item, types);
  }
}

Bytes take(Bytes& bytes, std::uint64_t count) {
  if (count > bytes.size()) unreadable("ends too early");
  const Bytes taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return taken;
}

std::int64_t take_integer(Bytes& bytes) {
  std::uint64_t number = 0;
  unsigned shift = 0;
  for (const std::uint8_t byte : take(bytes, sizeof(number))) {
    number |= std::uint64_t{byte} << shift;
    shift += 8;
  }
  return static_cast<std::int64_t>(number);
}

}  // namespace

SavedFile::SavedFile(Bytes bytes) {
  if (starts_with(bytes, archive_start)) {
    read_archive(bytes);
  } else if (bytes.size() > 2 && bytes[0] == 0x80 && starts_with(bytes.subspan(2), magic_number)) {
    read_pickles(bytes.subspan(2 + magic_number.size()));
  } else {
    unreadable("is not a complete file of torch.save or of stratagem train");
  }
}

void SavedFile::read_archive(Bytes bytes) {
  records_ = zip_records(bytes);
  const auto is_pickle = [](const auto& record) {
    const std::string& name = record.first;
    return name == pickle_name ||
           (name.ends_with("/data.pkl") && name.find('/') == name.size() - pickle_name.size() - 1);
  };
  const auto found = std::ranges::find_if(records_, is_pickle);
  if (found == records_.end())
    unreadable("is an archive without data.pkl, which torch.save writes");
  folder_ = found->first.substr(0, found->first.size() - pickle_name.size());
  if (records_.contains(folder_ + "constants.pkl")) {
    unreadable("is a TorchScript archive; write it with torch.save(module.state_dict(), FILE)");
  }
  if (const auto order = records_.find(folder_ + "byteorder"); order != records_.end()) {
    constexpr std::size_t longest = 16;
    const Bytes text = unpacked(order->second, longest);
    if (std::string(text.begin(), text.end()) != "little") {
      unreadable("is from a big-endian machine");
    }
  }
  value_ = read_pickle(unpacked(found->second, most_pickle_memory / 4));
}

/// Reads, after the magic number, the format's version, facts of the machine, the value, the names
/// of its storages, and each storage as its number of elements and its bytes.
void SavedFile::read_pickles(Bytes bytes) {
  constexpr std::int64_t version = 1001;
  const Value written_version = take_pickle(bytes);
  const auto* number = written_version.as<std::int64_t>();
  if (number == nullptr || *number != version) unreadable("has an unknown torch.save version");
  const Value machine = take_pickle(bytes);
  const Value* little = machine.find("little_endian");
  const bool* is_little = little == nullptr ? nullptr : little->as<bool>();
  if (is_little == nullptr || !*is_little) unreadable("is from a big-endian machine");
  value_ = take_pickle(bytes);
  const Value names = take_pickle(bytes);
  const auto* list = names.as<List>();
  if (list == nullptr) unreadable("lists no storages");
  std::map<std::string, std::string> types;
  collect_types(value_, types);
  for (const Value& name : list->items) {
    const auto* text = name.as<std::string>();
    const auto type = text == nullptr ? types.end() : types.find(*text);
    if (type == types.end()) unreadable("has a storage without a tensor");
    const std::int64_t elements = take_integer(bytes);
    storages_.emplace(*text, take(bytes, size_of(elements, type->second)));
  }
}

Bytes SavedFile::storage(const PickledTensor& tensor, std::size_t most) {
  const std::uint64_t wanted = size_of(tensor.elements, tensor.storage_type);
  const auto require = [&](std::uint64_t size) {
    if (size == wanted) return;
    unreadable(fmt::format("storage {} has {} bytes, expected {}", tensor.storage, size, wanted));
  };
  if (const auto old = storages_.find(tensor.storage); old != storages_.end()) {
    require(old->second.size());
    return old->second;
  }
  const auto found = records_.find(folder_ + "data/" + tensor.storage);
  if (found == records_.end()) unreadable(fmt::format("storage {} is missing", tensor.storage));
  require(found->second.size);
  return unpacked(found->second, most);
}

Bytes SavedFile::unpacked(const ZipRecord& record, std::size_t most) {
  if (record.deflated && inflated_from_ != &record) {
    inflated_from_ = nullptr;
    inflated_ = {};
    inflated_ = inflated(record, most);
    inflated_from_ = &record;
  }
  const Bytes bytes = record.deflated ? Bytes(inflated_) : record.bytes;
  if (!intact_.contains(&record)) require_intact(record, bytes);
  intact_.insert(&record);
  return bytes;
}

}  // namespace stratagem::checkpoint
