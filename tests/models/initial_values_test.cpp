// A parameter's first values follow from the seed and its name, whoever draws them and when.
#include "models/initial_values.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace stratagem::models::initial_values_test {
namespace {

TEST(InitialValues, AreThoseOfASeedAndAName) {
  constexpr std::uint64_t seed = 7;
  constexpr std::uint64_t beyond_32_bits = seed + (std::uint64_t{1} << 32U);
  for (const auto& values : {InitialValues::normal(0.5), InitialValues::uniform(0.5)}) {
    const at::Tensor drawn = draw(values, {4, 16}, seed, "fc1.weight");
    draw(values, {3}, seed, "fc1.bias");
    EXPECT_TRUE(at::equal(draw(values, {4, 16}, seed, "fc1.weight"), drawn));
    EXPECT_FALSE(at::equal(draw(values, {4, 16}, seed, "fc2.weight"), drawn));
    EXPECT_FALSE(at::equal(draw(values, {4, 16}, seed + 1, "fc1.weight"), drawn));
    EXPECT_FALSE(at::equal(draw(values, {4, 16}, beyond_32_bits, "fc1.weight"), drawn));
  }
}

}  // namespace
}  // namespace stratagem::models::initial_values_test
