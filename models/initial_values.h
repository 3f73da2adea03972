// InitialValues: what a parameter or buffer begins with. A layer is made without memory and notes
// them; they are drawn where the layer is to lie, so that a process draws what it holds and no
// more.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace stratagem::models {

struct InitialValues {
  enum class Distribution { constant, normal, uniform };

  Distribution distribution = Distribution::constant;
  double parameter = 0;  // the constant, the standard deviation, or the bound

  static InitialValues constant(double value) { return {Distribution::constant, value}; }
  /// Of mean 0.
  static InitialValues normal(double deviation) { return {Distribution::normal, deviation}; }
  /// In [-bound, bound).
  static InitialValues uniform(double bound) { return {Distribution::uniform, bound}; }
};

/// float32, on the CPU, from a generator of its own that is seeded with `seed` and the tensor's
/// name: the values depend neither on what else is drawn nor on who draws them.
at::Tensor draw(const InitialValues& values, at::IntArrayRef sizes, std::uint64_t seed,
                std::string_view name);

}  // namespace stratagem::models
