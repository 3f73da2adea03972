// The widest vectors of the instruction set that a file is compiled for. CMakeLists.txt says how
// wide they are: STRATAGEM_VECTOR_BYTES.
#pragma once

#include <cstdint>

namespace stratagem::models::kernels {
namespace {

inline constexpr int vector_bytes = STRATAGEM_VECTOR_BYTES;

template <typename T>
struct VectorOf {
  using Type [[gnu::vector_size(vector_bytes), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;
};

/// Loaded from and stored to any address; +, - and * go by elements.
template <typename T>
using Vector = typename VectorOf<T>::Type;

template <typename T>
constexpr std::int64_t vector_size = vector_bytes / sizeof(T);

template <typename T>
const Vector<T>& vector_at(const T* values) {
  return *reinterpret_cast<const Vector<T>*>(values);
}

template <typename T>
Vector<T>& vector_at(T* values) {
  return *reinterpret_cast<Vector<T>*>(values);
}

}  // namespace
}  // namespace stratagem::models::kernels
