// InitialValues: the first values of a parameter or buffer. A layer is made without memory and
// notes them. They are drawn on the layer's final device, so that a process draws only the values
// it holds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace stratagem::models {

struct InitialValues {
  enum class Distribution { constant, normal, uniform, stored };

  Distribution distribution = Distribution::constant;
  double parameter = 0;    // the constant, the standard deviation, or the bound
  at::Tensor values = {};  // stored ones

  static InitialValues constant(double value) { return {Distribution::constant, value}; }
  /// Returns values of mean 0.
  static InitialValues normal(double deviation) { return {Distribution::normal, deviation}; }
  /// Returns values in [-bound, bound).
  static InitialValues uniform(double bound) { return {Distribution::uniform, bound}; }
  /// Copies of the values of a tensor, whatever the seed.
  static InitialValues stored(at::Tensor values) {
    return {Distribution::stored, 0, std::move(values)};
  }
};

/// Draws float32, or copies stored values, on the CPU. The generator is seeded with `seed` and the
/// tensor's name: the values depend neither on other draws nor on the process.
at::Tensor draw(const InitialValues& values, at::IntArrayRef sizes, std::uint64_t seed,
                std::string_view name);

}  // namespace stratagem::models
