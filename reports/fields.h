// The fields of a struct by name, listed once for whatever reads, writes or sums them:
//
//   template <SameAs<Point> Self, class Visit>
//   void each_field(Self& point, Visit visit) {
//     visit("x", point.x);
//     visit("y", point.y);
//   }
#pragma once

#include <concepts>
#include <type_traits>

namespace stratagem::reports {

/// T or const T: one list serves both.
template <class T, class Struct>
concept SameAs = std::same_as<std::remove_const_t<T>, Struct>;

struct AnyVisit {
  void operator()(const char* name, const auto& field) const;
};

/// A struct with such a list.
template <class T>
concept HasFields = requires(T& value, AnyVisit visit) {
  each_field(value, visit);
};

}  // namespace stratagem::reports
