#include "training/checkpoint/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "training/checkpoint/pickle_bytes.h"
#include "training/checkpoint/pickle_names.h"

namespace stratagem::checkpoint {
namespace {

constexpr std::size_t most_nested = 32;
constexpr std::size_t of_a_reference = 16;  // the bytes of an entry on the stack

/// An object of the pickle. Objects refer to one another, like Python's, so an object that is
/// recalled several times is kept once.
struct Node {
  enum class Kind {
    mark,
    plain,       // None, a bool, an integer, a number: in `plain`
    string,      // in `text`
    list,        // elements in `parts`
    tuple,       // elements in `parts`
    dictionary,  // alternating keys and values in `parts`
    name,        // a name that is called or referred to: in `text`
    storage,     // a storage in `tensor`, without sizes
    tensor,
    other,  // a value of the class in `text`
  };
  Kind kind = Kind::plain;
  std::variant<None, bool, std::int64_t, double> plain = {};
  std::string text = {};
  std::vector<Node*> parts = {};
  std::unique_ptr<PickledTensor> tensor = {};

  bool is(Kind asked) const { return kind == asked; }
};

class Reader : private PickleBytes {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : PickleBytes(bytes) {}

  Value read() {
    for (;;) {
      const std::uint8_t opcode = next_opcode();
      if (opcode == '.') break;
      perform(opcode);
    }
    if (stack_.size() != 1) refuse("it ends with more values than one, or none");
    return finished(*stack_.back(), 0);
  }
  using PickleBytes::size;

 private:
  using Kind = Node::Kind;
  using Nodes = std::vector<Node*>;

  /// Subtracts bytes from the memory that the pickle may take.
  void count(std::size_t bytes) {
    if (bytes > left_) {
      refuse(fmt::format("its values take more than {} MiB", most_pickle_memory >> 20U));
    }
    left_ -= bytes;
  }
  void count_parts(std::size_t parts) {
    count(parts * of_a_reference);  // a vector that grows has room for twice as many
  }

  void push(Node node) {
    count(sizeof(Node) + of_a_reference);
    stack_.push_back(&nodes_.emplace_back(std::move(node)));
  }
  template <class Plain>
  void push_plain(Plain plain) {
    push({.plain = plain});
  }

  void push_string(std::size_t length) {
    std::string text = characters(length);
    count(text.size());
    push({.kind = Kind::string, .text = std::move(text)});
  }
  /// Reads two's complement of as many bytes as the first one states; no model needs over 64 bits.
  void push_long() {
    const std::size_t length = byte();
    if (length > 8) {
      take(length);
      return push({.kind = Kind::other, .text = "integer"});
    }
    const std::uint64_t bits = little_endian(length);
    if (length == 0) return push_plain(std::int64_t{0});
    const auto unused = static_cast<unsigned>(64 - 8 * length);
    push_plain(static_cast<std::int64_t>(bits << unused) >> unused);
  }
  Node* pop() {
    if (stack_.empty()) refuse("it takes a value that is not there");
    Node* node = stack_.back();
    stack_.pop_back();
    return node;
  }
  const Node& pop(Kind kind, const char* what) {
    const Node* node = pop();
    if (!node->is(kind)) refuse(fmt::format("{} should be here", what));
    return *node;
  }
  /// Pops the values above the last mark, in order, and the mark.
  Nodes since_mark() {
    const auto mark = std::find_if(stack_.rbegin(), stack_.rend(),
                                   [](const Node* node) { return node->is(Kind::mark); });
    if (mark == stack_.rend()) refuse("it takes a value that is not there");
    return popped(static_cast<std::size_t>(mark - stack_.rbegin()), 1);
  }
  /// Pops the last `many` values, in order, and `besides` more below them.
  Nodes popped(std::size_t many, std::size_t besides = 0) {
    if (many + besides > stack_.size()) refuse("it takes a value that is not there");
    count_parts(many);
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(many);
    Nodes nodes(first, stack_.end());
    if (std::ranges::any_of(nodes, [](const Node* node) { return node->is(Kind::mark); })) {
      refuse("a mark is not a value");
    }
    stack_.erase(first - static_cast<std::ptrdiff_t>(besides), stack_.end());
    return nodes;
  }

  /// Returns the list or dictionary on top of the stack.
  Node& top(Kind kind, const char* what) {
    if (stack_.empty() || !stack_.back()->is(kind)) refuse(fmt::format("{} should be here", what));
    return *stack_.back();
  }
  void append(const Nodes& parts) {
    Node& list = top(Kind::list, "a list");
    list.parts.insert(list.parts.end(), parts.begin(), parts.end());
  }
  void set_items(const Nodes& parts) {
    Node& dictionary = top(Kind::dictionary, "a dictionary");
    if (parts.size() % 2 != 0) refuse("a key has no value");
    for (std::size_t index = 0; index < parts.size(); index += 2) {
      const Kind kind = parts[index]->kind;
      if (kind != Kind::plain && kind != Kind::string && kind != Kind::tuple) {
        refuse("a key that no dictionary takes");
      }
    }
    dictionary.parts.insert(dictionary.parts.end(), parts.begin(), parts.end());
  }

  void memorise(std::uint64_t place) {
    if (stack_.empty()) refuse("it takes a value that is not there");
    if (stack_.back()->is(Kind::mark)) refuse("a mark is not a value");
    constexpr std::size_t of_an_entry = 64;
    count(of_an_entry);
    memory_.insert_or_assign(place, stack_.back());
  }
  void recall(std::uint64_t place) {
    const auto found = memory_.find(place);
    if (found == memory_.end()) refuse("it recalls what was not kept");
    count(of_a_reference);
    stack_.push_back(found->second);
  }

  void push_name() {
    const std::string module = line();
    std::string text = module + " " + line();
    count(text.size());
    if (meaning_of(text) == Named::refused) {
      refuse(
          fmt::format("{} is not among the names that a file of tensors needs; save "
                      "model.state_dict()",
                      text));
    }
    push({.kind = Kind::name, .text = std::move(text)});
  }

  std::int64_t integer(const Node& node) const {
    const auto* number = node.is(Kind::plain) ? std::get_if<std::int64_t>(&node.plain) : nullptr;
    if (number == nullptr) refuse("an integer should be here");
    return *number;
  }
  const std::string& text_of(const Node& node) const {
    if (!node.is(Kind::string)) refuse("a string should be here");
    return node.text;
  }
  std::vector<std::int64_t> integers(const Node& tuple) {
    if (!tuple.is(Kind::tuple)) refuse("a tuple should be here");
    count(tuple.parts.size() * sizeof(std::int64_t));
    std::vector<std::int64_t> numbers;
    numbers.reserve(tuple.parts.size());
    for (const Node* part : tuple.parts) numbers.push_back(integer(*part));
    return numbers;
  }

  /// Reads ("storage", type, record, device, elements), in old files followed by (view, offset,
  /// elements) or None.
  void push_storage() {
    const Nodes& parts = pop(Kind::tuple, "a tuple").parts;
    if (parts.size() < 5 || parts.size() > 6 || text_of(*parts[0]) != "storage" ||
        !parts[1]->is(Kind::name) || meaning_of(parts[1]->text) != Named::storage) {
      refuse("a persistent identifier that is no storage");
    }
    auto storage = std::make_unique<PickledTensor>();
    storage->storage = text_of(*parts[2]);
    storage->storage_type = parts[1]->text.substr(parts[1]->text.find(' ') + 1);
    storage->elements = integer(*parts[4]);
    if (storage->elements < 0) refuse("a storage of fewer than no elements");
    if (parts.size() == 6 && parts[5]->is(Kind::tuple)) {
      if (parts[5]->parts.size() != 3) refuse("a view of a storage has three parts");
      storage->offset = integer(*parts[5]->parts[1]);
    }
    push_tensor_node(Kind::storage, std::move(storage));
  }
  void push_tensor_node(Kind kind, std::unique_ptr<PickledTensor> tensor) {
    count(sizeof(PickledTensor) + tensor->storage.size() + tensor->storage_type.size());
    push({.kind = kind, .tensor = std::move(tensor)});
  }

  void reduce() {
    const Nodes& arguments = pop(Kind::tuple, "a tuple").parts;
    call(pop(Kind::name, "a name").text, arguments);
  }
  void call(const std::string& name, const Nodes& arguments) {
    switch (meaning_of(name)) {
      case Named::dictionary:
        if (!arguments.empty()) refuse("an OrderedDict is made empty");
        return push({.kind = Kind::dictionary});
      case Named::tensor:
        return push_tensor(arguments);
      case Named::first:
        if (arguments.empty()) refuse(fmt::format("{} takes an argument", name));
        count(of_a_reference);
        return stack_.push_back(arguments.front());
      case Named::typed:
        return call_typed(arguments);
      case Named::other:
        return push({.kind = Kind::other, .text = name});
      default:
        refuse(fmt::format("{} is not called", name));
    }
  }
  /// Reads (function, type, arguments, state).
  void call_typed(const Nodes& arguments) {
    if (arguments.size() != 4 || !arguments[0]->is(Kind::name) || !arguments[2]->is(Kind::tuple) ||
        meaning_of(arguments[0]->text) == Named::typed) {
      refuse("a tensor with attributes has a function, a type, arguments and a state");
    }
    call(arguments[0]->text, arguments[2]->parts);
  }

  /// Reads (storage, offset, sizes, strides, ...).
  void push_tensor(const Nodes& arguments) {
    if (arguments.size() < 4 || !arguments[0]->is(Kind::storage)) {
      refuse("a tensor without storage, offset, sizes and strides");
    }
    auto tensor = std::make_unique<PickledTensor>(*arguments[0]->tensor);
    const std::int64_t view = tensor->offset;
    if (__builtin_add_overflow(view, integer(*arguments[1]), &tensor->offset) || view < 0) {
      refuse("a tensor that begins outside its storage");
    }
    tensor->sizes = integers(*arguments[2]);
    tensor->strides = integers(*arguments[3]);
    require_within(*tensor);
    push_tensor_node(Kind::tensor, std::move(tensor));
  }

  void require_within(const PickledTensor& tensor) const {
    if (tensor.sizes.size() != tensor.strides.size()) refuse("sizes without strides");
    if (tensor.offset < 0) refuse("a tensor that begins before its storage");
    std::int64_t last = tensor.offset;
    for (std::size_t index = 0; index < tensor.sizes.size(); ++index) {
      if (tensor.sizes[index] < 0 || tensor.strides[index] < 0) {
        refuse("a negative size or stride");
      }
    }
    if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end()) return;
    for (std::size_t index = 0; index < tensor.sizes.size(); ++index) {
      std::int64_t reach = 0;
      if (__builtin_mul_overflow(tensor.sizes[index] - 1, tensor.strides[index], &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        refuse("a tensor of more elements than there are numbers");
      }
    }
    if (last >= tensor.elements) refuse("a tensor reaches beyond its storage");
  }

  /// Drops attributes, such as an OrderedDict's version, which no model needs.
  void drop_attributes() {
    if (pop()->is(Kind::mark)) refuse("a mark is not a value");
    if (stack_.empty() ||
        !(stack_.back()->is(Kind::dictionary) || stack_.back()->is(Kind::other))) {
      refuse("only dictionaries have attributes");
    }
  }

  void perform(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO: only the opcodes themselves matter
        byte();
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
        return push({.kind = Kind::tuple, .parts = since_mark()});
      case 0x85:  // TUPLE1
      case 0x86:
      case 0x87:
        return push({.kind = Kind::tuple, .parts = popped(opcode - 0x84U)});
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

  /// Pushes a number, a string or None.
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
        return push_long();
      case 'G':
        return push_plain(big_endian_double());
      case 'X':
        return push_string(little_endian(4));
      case 'U':
        return push_string(byte());
      default:
        refuse(
            fmt::format("opcode {:#04x} is not among those that a file of tensors needs", opcode));
    }
  }

  /// Copies the graph into a tree: an object with two references becomes two values.
  Value finished(const Node& node, std::size_t depth) {
    if (depth > most_nested) refuse("values are nested too deeply");
    switch (node.kind) {
      case Kind::plain:
        return std::visit([](auto plain) { return Value{plain}; }, node.plain);
      case Kind::string:
        count(node.text.size());
        return {node.text};
      case Kind::tensor:
        count(node.tensor->storage.size() + node.tensor->storage_type.size() +
              2 * node.tensor->sizes.size() * sizeof(std::int64_t));
        return {*node.tensor};
      case Kind::list:
        return {List{all_finished(node.parts, depth)}};
      case Kind::tuple:
        return {Tuple{all_finished(node.parts, depth)}};
      case Kind::dictionary:
        return {finished_dictionary(node.parts, depth)};
      case Kind::name:
      case Kind::other:
        count(node.text.size());
        return {Other{node.text}};
      default:
        refuse("a mark or a storage where a value should be");
    }
  }
  std::vector<Value> all_finished(const Nodes& nodes, std::size_t depth) {
    count(nodes.size() * sizeof(Value));
    std::vector<Value> values;
    values.reserve(nodes.size());
    for (const Node* node : nodes) values.push_back(finished(*node, depth + 1));
    return values;
  }
  Dictionary finished_dictionary(const Nodes& nodes, std::size_t depth) {
    count(nodes.size() * sizeof(Value));
    Dictionary dictionary;
    dictionary.items.reserve(nodes.size() / 2);
    for (std::size_t index = 0; index < nodes.size(); index += 2) {
      Value key = finished(*nodes[index], depth + 1);
      dictionary.items.push_back({std::move(key), finished(*nodes[index + 1], depth + 1)});
    }
    return dictionary;
  }

  std::size_t left_ = most_pickle_memory;
  std::deque<Node> nodes_;
  Nodes stack_;
  std::map<std::uint64_t, Node*> memory_;
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

Value take_pickle(std::span<const std::uint8_t>& bytes) {
  Reader reader(bytes);
  Value value = reader.read();
  bytes = bytes.subspan(reader.size());
  return value;
}

}  // namespace stratagem::checkpoint
