// Lists the fields of a struct by name, once for all that reads, writes or sums them:
//
//   struct Point {
//     double x = 0;
//     double y = 0;
//
//     STRATAGEM_FIELDS(x, y)
//   };
#pragma once

#include <algorithm>
#include <string_view>
#include <tuple>
#include <type_traits>

#define STRATAGEM_FIELDS(...)                              \
  static constexpr const char* field_names = #__VA_ARGS__; \
  auto fields() { return std::tie(__VA_ARGS__); }          \
  auto fields() const { return std::tie(__VA_ARGS__); }

namespace stratagem::reports {

/// A struct that lists its fields.
template <class T>
concept ListsFields = requires(T& value) {
  std::remove_const_t<T>::field_names;
  value.fields();
};

struct AnyVisit {
  void operator()(std::string_view name, const auto& field) const;
};

/// A struct that visits its fields itself.
template <class T>
concept VisitsFields = requires(T& value, AnyVisit visit) {
  std::remove_const_t<T>::each_field(value, visit);
};

template <class T>
concept HasFields = ListsFields<T> || VisitsFields<T>;

/// Calls `visit(name, field)` for each field in the order of the list. The name, a
/// std::string_view, stays valid.
template <HasFields T, class Visit>
void each_field(T& value, Visit visit) {
  if constexpr (ListsFields<T>) {
    std::string_view names = std::remove_const_t<T>::field_names;
    const auto next_name = [&names] {
      const std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(std::min(names.size(), name.size() + 2));
      return name;
    };
    std::apply([&](auto&... field) { (visit(next_name(), field), ...); }, value.fields());
  } else {
    std::remove_const_t<T>::each_field(value, visit);
  }
}

}  // namespace stratagem::reports
