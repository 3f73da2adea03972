// The content of a pickle of tensors: plain values, and tensors as positions of their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stratagem::checkpoint {

struct Value;
struct DictionaryItem;

struct List {
  std::vector<Value> items;
};
struct Tuple {
  std::vector<Value> items;
};
/// The items in the file's order. A key is a plain value or a tuple.
struct Dictionary {
  std::vector<DictionaryItem> items;
};

/// Element [i, j, ...] is number `offset` + i strides[0] + j strides[1] + ... of the storage.
struct PickledTensor {
  std::string storage;        // the name of its record: data/NAME
  std::string storage_type;   // "FloatStorage"
  std::int64_t elements = 0;  // the elements of the storage
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

struct None {};

/// A value of a class that torch.load knows and no model needs: a dtype, a device, a set.
struct Other {
  std::string name;  // "torch device"
};

struct Value {
  std::variant<None, bool, std::int64_t, double, std::string, List, Tuple, Dictionary,
               PickledTensor, Other>
      is;

  /// Returns null for a value of another kind.
  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&is);
  }
  /// Returns the last entry of a dictionary under a key; null if there is none or this is not a
  /// dictionary.
  const Value* find(std::string_view key) const;
};

struct DictionaryItem {
  Value key;
  Value value;
};

}  // namespace stratagem::checkpoint
