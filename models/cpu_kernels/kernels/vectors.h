// The widest vectors of the file's instruction set. CMakeLists.txt defines the set and the width:
// STRATAGEM_INSTRUCTION_SET, STRATAGEM_VECTOR_BYTES.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {
namespace {

inline constexpr InstructionSet own_set = InstructionSet::STRATAGEM_INSTRUCTION_SET;
inline constexpr int vector_bytes = STRATAGEM_VECTOR_BYTES;

template <typename T>
struct VectorOf {
  using Type [[gnu::vector_size(vector_bytes)]] = T;
};

/// A vector whose operators +, - and * work by elements.
template <typename T>
using Vector = typename VectorOf<T>::Type;

template <typename T>
constexpr std::int64_t vector_size = vector_bytes / sizeof(T);

/// Loads a vector from any address.
template <typename T>
Vector<T> load(const T* values) {
  Vector<T> vector;
  __builtin_memcpy(&vector, values, sizeof(vector));
  return vector;
}

/// Stores a vector at any address.
template <typename T>
void store(const Vector<T>& vector, T* values) {
  __builtin_memcpy(values, &vector, sizeof(vector));
}

}  // namespace
}  // namespace stratagem::models::kernels
