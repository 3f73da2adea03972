#include "training/checkpoint/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace stratagem::checkpoint {
namespace {

constexpr std::size_t most_nested = 32;
constexpr std::size_t most_values = 1'000'000;

constexpr std::array<std::string_view, 10> storage_types = {
    "FloatStorage", "DoubleStorage", "HalfStorage", "BFloat16Storage", "LongStorage",
    "IntStorage",   "ShortStorage",  "CharStorage", "ByteStorage",     "BoolStorage"};
constexpr std::string_view dictionary_name = "collections OrderedDict";
constexpr std::string_view tensor_name = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view parameter_name = "torch._utils _rebuild_parameter";

/// What stands on the stack.
struct Node {
  enum class Kind {
    mark,
    plain,       // None, a number, a string, a tensor: in `value`
    list,        // of `parts`, as are
    tuple,       // and
    dictionary,  // whose keys and values alternate
    name,        // of something that is called or referred to: in `text`
    storage,     // its record in `text`, its type and its elements
  };
  Kind kind = Kind::plain;
  Value value = {};
  std::vector<Node> parts = {};
  std::string text = {};
  std::string storage_type = {};
  std::int64_t elements = 0;
  std::size_t depth = 0;
  std::size_t values = 1;

  bool is(Kind other) const { return kind == other; }
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  Value read() {
    for (;;) {
      at_ = next_;
      const std::uint8_t opcode = byte();
      if (opcode == '.') break;
      perform(opcode);
    }
    if (stack_.size() != 1) refuse("it ends with more values than one, or none");
    return finished(std::move(stack_.back()));
  }

 private:
  using Kind = Node::Kind;

  [[noreturn]] void refuse(const std::string& reason) const {
    throw std::invalid_argument(fmt::format("pickle, byte {}: {}", at_, reason));
  }

  std::span<const std::uint8_t> take(std::size_t count) {
    if (count > bytes_.size() - next_) refuse("it ends too early");
    const auto taken = bytes_.subspan(next_, count);
    next_ += count;
    return taken;
  }
  std::uint8_t byte() { return take(1).front(); }
  std::uint64_t little_endian(std::size_t count) {
    std::uint64_t number = 0;
    unsigned shift = 0;
    for (const std::uint8_t each : take(count)) {
      number |= std::uint64_t{each} << shift;
      shift += 8;
    }
    return number;
  }
  std::string characters(std::size_t length) {
    const auto taken = take(length);
    return {taken.begin(), taken.end()};
  }
  std::string line() {
    const auto rest = bytes_.subspan(next_);
    const auto end = std::ranges::find(rest, std::uint8_t{'\n'});
    if (end == rest.end()) refuse("it ends too early");
    next_ += static_cast<std::size_t>(end - rest.begin()) + 1;
    return {rest.begin(), end};
  }
  double big_endian_double() {
    std::uint64_t bits = 0;
    for (const std::uint8_t each : take(8)) bits = bits << 8U | each;
    return std::bit_cast<double>(bits);
  }
  /// Two's complement, as many bytes as the first one says.
  std::int64_t long_integer() {
    const std::size_t length = byte();
    if (length > 8) refuse("an integer of more than 64 bits");
    const std::uint64_t bits = little_endian(length);
    if (length == 0) return 0;
    const auto unused = static_cast<unsigned>(64 - 8 * length);
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }

  void count(const Node& node) {
    values_ += node.values;
    if (values_ > most_values) refuse("there are more values than a checkpoint has");
  }
  void push(Node node) {
    count(node);
    if (node.depth > most_nested) refuse("values are nested too deeply");
    stack_.push_back(std::move(node));
  }
  template <class Plain>
  void push_plain(Plain plain) {
    push({.value = {std::move(plain)}});
  }
  /// Long ones count as several values.
  void push_string(std::size_t length) {
    constexpr std::size_t of_a_value = 64;
    push({.value = {characters(length)}, .values = 1 + length / of_a_value});
  }
  Node pop() {
    if (stack_.empty()) refuse("it takes a value that is not there");
    Node node = std::move(stack_.back());
    stack_.pop_back();
    return node;
  }
  Node pop(Kind kind, const char* what) {
    Node node = pop();
    if (!node.is(kind)) refuse(fmt::format("{} should be here", what));
    return node;
  }
  /// What lies above the last mark, in order; the mark goes.
  std::vector<Node> since_mark() {
    std::vector<Node> nodes;
    for (Node node = pop(); !node.is(Kind::mark); node = pop()) nodes.push_back(std::move(node));
    std::ranges::reverse(nodes);
    return nodes;
  }
  std::vector<Node> popped(std::size_t count) {
    std::vector<Node> nodes;
    for (std::size_t index = 0; index < count; ++index) nodes.push_back(pop());
    std::ranges::reverse(nodes);
    return nodes;
  }

  void add(Node& whole, std::vector<Node> parts) {
    for (Node& part : parts) {
      if (part.is(Kind::mark)) refuse("a mark is no value");
      whole.depth = std::max(whole.depth, part.depth + 1);
      if (whole.depth > most_nested) refuse("values are nested too deeply");
      whole.values += part.values;
      whole.parts.push_back(std::move(part));
    }
  }
  void push_tuple(std::vector<Node> parts) {
    Node tuple{.kind = Kind::tuple};
    add(tuple, std::move(parts));
    values_ -= tuple.values - 1;  // they have been counted
    push(std::move(tuple));
  }
  void append(std::vector<Node> parts) {
    if (stack_.empty() || !stack_.back().is(Kind::list)) refuse("a list should be here");
    add(stack_.back(), std::move(parts));
  }
  void set_items(std::vector<Node> parts) {
    if (stack_.empty() || !stack_.back().is(Kind::dictionary)) {
      refuse("a dictionary should be here");
    }
    if (parts.size() % 2 != 0) refuse("a key has no value");
    for (std::size_t index = 0; index < parts.size(); index += 2) {
      const Value& key = parts[index].value;
      const bool fits = parts[index].is(Kind::plain) &&
                        (key.as<std::string>() != nullptr || key.as<std::int64_t>() != nullptr);
      if (!fits) refuse("a key is neither a string nor an integer");
    }
    add(stack_.back(), std::move(parts));
  }

  /// Values that stand for themselves may be used again; a list or dictionary would be one object
  /// in two places.
  void memorise(std::uint64_t place) {
    if (stack_.empty()) refuse("it takes a value that is not there");
    const Node& node = stack_.back();
    if (node.is(Kind::mark)) refuse("a mark is no value");
    count(node);  // twice as much of it is kept now
    const bool changes = node.is(Kind::list) || node.is(Kind::dictionary);
    memory_.insert_or_assign(place, changes ? std::nullopt : std::optional(node));
  }
  void recall(std::uint64_t place) {
    const auto found = memory_.find(place);
    if (found == memory_.end()) refuse("it recalls what was not kept");
    if (!found->second) refuse("a list or dictionary stands in two places");
    push(*found->second);
  }

  void push_name() {
    const std::string module = line();
    std::string text = module + " " + line();
    const bool storage =
        module == "torch" &&
        std::ranges::find(storage_types, std::string_view(text).substr(6)) != storage_types.end();
    if (!storage && text != dictionary_name && text != tensor_name && text != parameter_name) {
      refuse(fmt::format("{} is not among the names that a file of tensors needs", text));
    }
    push({.kind = Kind::name, .text = std::move(text)});
  }

  std::int64_t integer(const Node& node) const {
    const auto* number = node.is(Kind::plain) ? node.value.as<std::int64_t>() : nullptr;
    if (number == nullptr) refuse("an integer should be here");
    return *number;
  }
  std::string text_of(const Node& node) const {
    const auto* text = node.is(Kind::plain) ? node.value.as<std::string>() : nullptr;
    if (text == nullptr) refuse("a string should be here");
    return *text;
  }
  std::vector<std::int64_t> integers(const Node& tuple) const {
    if (!tuple.is(Kind::tuple)) refuse("a tuple should be here");
    std::vector<std::int64_t> numbers;
    for (const Node& part : tuple.parts) numbers.push_back(integer(part));
    return numbers;
  }

  /// ("storage", type, record, device, elements)
  void push_storage() {
    const Node tuple = pop(Kind::tuple, "a tuple");
    if (tuple.parts.size() != 5 || text_of(tuple.parts[0]) != "storage" ||
        !tuple.parts[1].is(Kind::name) || !tuple.parts[1].text.starts_with("torch ")) {
      refuse("a persistent identifier that is no storage");
    }
    Node storage{.kind = Kind::storage,
                 .text = text_of(tuple.parts[2]),
                 .storage_type = tuple.parts[1].text.substr(6),
                 .elements = integer(tuple.parts[4])};
    if (storage.elements < 0) refuse("a storage of fewer than no elements");
    push(std::move(storage));
  }

  void reduce() {
    Node arguments = pop(Kind::tuple, "a tuple");
    const Node name = pop(Kind::name, "a name");
    if (name.text == dictionary_name) {
      if (!arguments.parts.empty()) refuse("an OrderedDict is made empty");
      return push({.kind = Kind::dictionary});
    }
    if (name.text == tensor_name) return push_tensor(arguments.parts);
    if (name.text != parameter_name) refuse(fmt::format("{} is not called", name.text));
    if (arguments.parts.empty() || !arguments.parts.front().is(Kind::plain) ||
        arguments.parts.front().value.as<PickledTensor>() == nullptr) {
      refuse("a parameter that is no tensor");
    }
    push(std::move(arguments.parts.front()));
  }

  /// (storage, offset, sizes, strides, requires_grad, hooks, ...)
  void push_tensor(const std::vector<Node>& arguments) {
    if (arguments.size() < 4 || !arguments[0].is(Kind::storage)) {
      refuse("a tensor without storage, offset, sizes and strides");
    }
    const Node& storage = arguments[0];
    PickledTensor tensor{.storage = storage.text,
                         .storage_type = storage.storage_type,
                         .elements = storage.elements,
                         .offset = integer(arguments[1]),
                         .sizes = integers(arguments[2]),
                         .strides = integers(arguments[3])};
    require_within(tensor);
    push_plain(std::move(tensor));
  }

  void require_within(const PickledTensor& tensor) const {
    if (tensor.sizes.size() != tensor.strides.size()) refuse("sizes without strides");
    if (tensor.offset < 0) refuse("a tensor that begins before its storage");
    std::int64_t last = tensor.offset;
    for (std::size_t index = 0; index < tensor.sizes.size(); ++index) {
      const std::int64_t size = tensor.sizes[index];
      if (size < 0 || tensor.strides[index] < 0) refuse("a negative size or stride");
      if (size == 0) return;
      std::int64_t reach = 0;
      if (__builtin_mul_overflow(size - 1, tensor.strides[index], &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        refuse("a tensor of more elements than there are numbers");
      }
    }
    if (last >= tensor.elements) refuse("a tensor reaches beyond its storage");
  }

  /// Attributes of an OrderedDict, as a model's version: nothing that is needed.
  void drop_attributes() {
    pop(Kind::dictionary, "a dictionary");
    if (stack_.empty() || !stack_.back().is(Kind::dictionary)) {
      refuse("only dictionaries have attributes");
    }
  }

  void perform(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (byte() != 2) refuse("it is not of protocol 2, torch.save's own");
        return;
      case '(':
        return push({.kind = Kind::mark});
      case '}':
        return push({.kind = Kind::dictionary});
      case ']':
        return push({.kind = Kind::list});
      case ')':
        return push({.kind = Kind::tuple});
      case 't':
        return push_tuple(since_mark());
      case 0x85:  // TUPLE1
      case 0x86:
      case 0x87:
        return push_tuple(popped(opcode - 0x84U));
      case 'a':
        return append(popped(1));
      case 'e':
        return append(since_mark());
      case 's':
        return set_items(popped(2));
      case 'u':
        return set_items(since_mark());
      case 'q':
        return memorise(byte());
      case 'r':
        return memorise(little_endian(4));
      case 'h':
        return recall(byte());
      case 'j':
        return recall(little_endian(4));
      case 'c':
        return push_name();
      case 'Q':
        return push_storage();
      case 'R':
        return reduce();
      case 'b':
        return drop_attributes();
      default:
        return push_number(opcode);
    }
  }

  /// Numbers, strings, None.
  void push_number(std::uint8_t opcode) {
    switch (opcode) {
      case 'N':
        return push_plain(None{});
      case 0x88:
        return push_plain(true);
      case 0x89:
        return push_plain(false);
      case 'K':
        return push_plain(static_cast<std::int64_t>(byte()));
      case 'M':
        return push_plain(static_cast<std::int64_t>(little_endian(2)));
      case 'J':
        return push_plain(std::int64_t{static_cast<std::int32_t>(little_endian(4))});
      case 0x8a:  // LONG1
        return push_plain(long_integer());
      case 'G':
        return push_plain(big_endian_double());
      case 'X':
        return push_string(little_endian(4));
      default:
        refuse(
            fmt::format("opcode {:#04x} is not among those that a file of tensors needs", opcode));
    }
  }

  Value finished(Node node) const {
    switch (node.kind) {
      case Kind::plain:
        return std::move(node.value);
      case Kind::list:
        return {List{all_finished(std::move(node.parts))}};
      case Kind::tuple:
        return {Tuple{all_finished(std::move(node.parts))}};
      case Kind::dictionary: {
        Dictionary dictionary;
        for (std::size_t index = 0; index < node.parts.size(); index += 2) {
          dictionary.items.push_back(
              {finished(std::move(node.parts[index])), finished(std::move(node.parts[index + 1]))});
        }
        return {std::move(dictionary)};
      }
      default:
        refuse("a name, a mark or a storage where a value should be");
    }
  }
  std::vector<Value> all_finished(std::vector<Node> nodes) const {
    std::vector<Value> values;
    for (Node& node : nodes) values.push_back(finished(std::move(node)));
    return values;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
  std::size_t at_ = 0;      // of the opcode
  std::size_t values_ = 0;  // on the stack and gone
  std::vector<Node> stack_;
  std::map<std::uint64_t, std::optional<Node>> memory_;
};

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto* dictionary = as<Dictionary>();
  if (dictionary == nullptr) return nullptr;
  const auto& items = dictionary->items;
  const auto found = std::find_if(items.rbegin(), items.rend(), [key](const auto& item) {
    const auto* text = item.key.template as<std::string>();
    return text != nullptr && *text == key;
  });
  return found == items.rend() ? nullptr : &found->value;
}

Value read_pickle(std::span<const std::uint8_t> bytes) { return Reader(bytes).read(); }

}  // namespace stratagem::checkpoint
