// Convolutions of few multiplications by every instruction set that this processor has, against
// their definition in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/kernels/winograd_kernels.h"

namespace stratagem::models::winograd_test {
namespace {

using kernels::WinogradShape;

/// Between -1 and 1, and alike in no two places near one another.
template <typename T>
std::vector<T> values(std::int64_t count, double of) {
  std::vector<T> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(static_cast<T>(std::sin(static_cast<double>(i) * of)));
  }
  return all;
}

/// Calls visit(x, weight, y), three indices, for each product that the definition sums.
template <typename Visit>
void for_each_product(const WinogradShape& shape, const Visit& visit) {
  for (std::int64_t pixel = 0; pixel < shape.samples * shape.height * shape.width; ++pixel) {
    const std::int64_t row = pixel / shape.width % shape.height;
    const std::int64_t column = pixel % shape.width;
    for (std::int64_t place = 0; place < 9; ++place) {
      const std::int64_t from_row = row + place / 3 - 1;
      const std::int64_t from_column = column + place % 3 - 1;
      if (from_row < 0 || from_row >= shape.height) continue;
      if (from_column < 0 || from_column >= shape.width) continue;
      const std::int64_t from = pixel + (place / 3 - 1) * shape.width + place % 3 - 1;
      for (std::int64_t out = 0; out < shape.out; ++out) {
        for (std::int64_t in = 0; in < shape.in; ++in) {
          visit(from * shape.in + in, (out * 9 + place) * shape.in + in, pixel * shape.out + out);
        }
      }
    }
  }
}

template <typename T>
struct Problem {
  explicit Problem(const WinogradShape& of)
      : shape(of),
        x(values<T>(of.samples * of.height * of.width * of.in, 0.7)),
        weight(values<T>(of.out * 9 * of.in, 1.3)),
        gradient(values<T>(of.samples * of.height * of.width * of.out, 0.3)),
        expected_output(gradient.size(), 0.0),
        expected_input_gradient(x.size(), 0.0),
        expected_weight_gradient(weight.size(), 0.0) {
    for_each_product(of, [&](std::size_t of_x, std::size_t of_weight, std::size_t of_y) {
      const auto image = static_cast<double>(x[of_x]);
      const auto factor = static_cast<double>(weight[of_weight]);
      const auto back = static_cast<double>(gradient[of_y]);
      expected_output[of_y] += image * factor;
      expected_input_gradient[of_x] += back * factor;
      expected_weight_gradient[of_weight] += image * back;
    });
  }

  WinogradShape shape;
  std::vector<T> x;
  std::vector<T> weight;
  std::vector<T> gradient;  // of the output
  std::vector<double> expected_output;
  std::vector<double> expected_input_gradient;
  std::vector<double> expected_weight_gradient;
};

/// So that a rest of a block is computed beside whole ones, and a part alone.
template <typename Work>
void in_two_parts(std::int64_t count, std::int64_t unit, const Work& work) {
  const std::int64_t first = count / unit / 3 * unit;
  if (first > 0) work(0, first);
  work(first, count - first);
}

template <typename T>
std::vector<T> convolve(const kernels::WinogradKernels<T>& kernels, const WinogradShape& shape,
                        const std::vector<T>& x, const std::vector<T>& weight, bool backwards) {
  constexpr std::int64_t panel = kernels::winograd_channels<T>;
  std::vector<T> transformed(weight.size() / 9 * kernels::winograd_places);
  const std::int64_t in = backwards ? shape.out : shape.in;  // of the weight
  const std::int64_t out = backwards ? shape.in : shape.out;
  in_two_parts(shape.out, panel, [&](std::int64_t first, std::int64_t count) {
    kernels.weights({weight.data(), in, out, backwards, transformed.data()}, first, count);
  });
  std::vector<T> y(
      static_cast<std::size_t>(shape.samples * shape.height * shape.width * shape.out));
  std::vector<T> scratch(static_cast<std::size_t>(kernels::winograd_scratch(shape)));
  in_two_parts(kernels::winograd_tiles(shape), 1, [&](std::int64_t first, std::int64_t count) {
    kernels.convolve({x.data(), transformed.data(), y.data(), shape, scratch.data()}, first, count);
  });
  return y;
}

/// Each a sum of so many products, which are at most 1.
template <typename T>
void expect_near(const std::vector<T>& actual, const std::vector<double>& expected,
                 std::int64_t products) {
  ASSERT_EQ(actual.size(), expected.size());
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(expected[i] - static_cast<double>(actual[i])));
  }
  const double unit = sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-53;
  EXPECT_LE(error, unit * static_cast<double>(16 + products));
}

template <typename T>
void expect_convolution(const kernels::WinogradKernels<T>& kernels, const Problem<T>& problem) {
  const WinogradShape& shape = problem.shape;
  expect_near(convolve(kernels, shape, problem.x, problem.weight, false), problem.expected_output,
              9 * shape.in);
  const WinogradShape turned = {shape.samples, shape.height, shape.width, shape.out, shape.in};
  expect_near(convolve(kernels, turned, problem.gradient, problem.weight, true),
              problem.expected_input_gradient, 9 * shape.out);
}

template <typename T>
void expect_gradient(const kernels::WinogradKernels<T>& kernels, const Problem<T>& problem,
                     bool added) {
  const WinogradShape& shape = problem.shape;
  std::vector<double> expected = problem.expected_weight_gradient;
  for (std::size_t i = 0; added && i < expected.size(); ++i) {
    expected[i] += static_cast<double>(problem.weight[i]);
  }
  std::vector<T> sum = problem.weight;
  std::vector<T> scratch(
      static_cast<std::size_t>(kernels::winograd_gradient_scratch<T>(shape, shape.out)));
  in_two_parts(
      shape.out, kernels::winograd_channels<T>, [&](std::int64_t first, std::int64_t count) {
        kernels.gradient(
            {problem.x.data(), problem.gradient.data(), sum.data(), shape, added, scratch.data()},
            first, count);
      });
  expect_near(sum, expected, shape.samples * shape.height * shape.width);
}

template <typename T>
class WinogradKernels : public testing::Test {};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(WinogradKernels, Types);

TYPED_TEST(WinogradKernels, AreConvolutionsByEveryInstructionSet) {
  constexpr std::int64_t panel = kernels::winograd_channels<TypeParam>;
  // One tile, cut both ways; whole ones; several blocks of tiles and a rest, of few channels and of
  // many.
  for (const WinogradShape& shape : {WinogradShape{1, 1, 1, panel, panel},
                                     {2, 4, 6, panel, 2 * panel},
                                     {3, 15, 17, panel, panel},
                                     {1, 5, 4, 8 * panel, 3 * panel},
                                     {1, 21, 20, 14 * panel, 3 * panel}}) {
    const Problem<TypeParam> problem(shape);
    int number = 0;
    for (const kernels::InstructionSet set : kernels::supported_sets()) {
      const auto& own = kernels::kernels_of<kernels::WinogradKernels<TypeParam>>(set);
      SCOPED_TRACE(testing::Message() << shape.samples << " x " << shape.height << " x "
                                      << shape.width << ", instruction set " << number++);
      expect_convolution(own, problem);
      for (const bool added : {false, true}) {
        expect_gradient(own, problem, added);
      }
    }
  }
}

}  // namespace
}  // namespace stratagem::models::winograd_test
