// The widest vectors of the instruction set that a file is compiled for. CMakeLists.txt says how
// wide they are: STRATAGEM_VECTOR_BYTES.
#pragma once

#include <cstdint>

namespace stratagem::models::kernels {
namespace {

constexpr int vector_bytes = STRATAGEM_VECTOR_BYTES;

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));
};

/// Loaded from and stored to any address; +, - and * go by elements.
template <typename T>
using Vector = typename VectorOf<T>::type;

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
