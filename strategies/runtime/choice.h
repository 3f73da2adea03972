// A value that is one of a few names, all known to the compiler.
//
//   Choice<"none", "fp16"> compression = "none";
//   if (compression == "fp16") ...
//
// Any other name instead does not compile. find() turns a user's text into a Choice.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace stratagem::runtime {

/// A text as a template argument.
template <std::size_t size>
struct Letters {
  std::array<char, size> text{};

  consteval Letters(const char (&literal)[size]) { std::copy_n(literal, size, text.begin()); }
  constexpr std::string_view view() const { return {text.data(), size - 1}; }
};

template <Letters... listed>
class Choice {
 public:
  static constexpr std::array<std::string_view, sizeof...(listed)> names = {listed.view()...};

  /// Any other name does not compile, because std::optional has no value there.
  consteval Choice(const char* name) : index_(position_of(name).value()) {}

  /// Returns nothing for any other name.
  static constexpr std::optional<Choice> find(std::string_view name) {
    const auto index = position_of(name);
    return index ? std::optional(Choice(*index)) : std::nullopt;
  }

  std::string name() const { return std::string(names[index_]); }

  /// Returns the value at the name's place among `values`, which has one for each name.
  template <class... Values>
  constexpr auto pick(Values... values) const {
    static_assert(sizeof...(Values) == names.size(), "one value for each name, in their order");
    return std::array{values...}[index_];
  }

  /// Orders names by the list.
  friend constexpr auto operator<=>(Choice, Choice) = default;

  friend std::ostream& operator<<(std::ostream& out, Choice choice) { return out << choice.name(); }

 private:
  explicit constexpr Choice(std::size_t index) : index_(index) {}

  static constexpr std::optional<std::size_t> position_of(std::string_view name) {
    for (std::size_t index = 0; index < names.size(); ++index) {
      if (names[index] == name) return index;
    }
    return std::nullopt;
  }

  std::size_t index_;
};

/// A struct member that is a Choice, whatever its names are.
template <class Struct>
struct ChoiceMember {
  std::span<const std::string_view> names;
  std::function<std::string(const Struct&)> name_in;
  std::function<bool(Struct&, std::string_view)> set;  // false, and no change, for any other name

  /// `Owner` is Struct or one of its bases.
  template <class Owner, Letters... listed>
  ChoiceMember(Choice<listed...> Owner::*member)
      : names(Choice<listed...>::names),
        name_in([member](const Struct& object) { return (object.*member).name(); }),
        set([member](Struct& object, std::string_view name) {
          const auto found = Choice<listed...>::find(name);
          if (found) object.*member = *found;
          return found.has_value();
        }) {}

  /// Makes the member one of a struct that inherits it.
  template <class Base>
  ChoiceMember(const ChoiceMember<Base>& of_base)
      : names(of_base.names), name_in(of_base.name_in), set(of_base.set) {}
};

}  // namespace stratagem::runtime

template <stratagem::runtime::Letters... listed>
struct fmt::formatter<stratagem::runtime::Choice<listed...>> : fmt::formatter<std::string_view> {
  auto format(stratagem::runtime::Choice<listed...> choice, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(choice.name(), context);
  }
};
