#include "models/cpu_kernels/attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "tests/models/single_thread.h"

namespace stratagem::models {
namespace {

struct Result {
  at::Tensor mixed;
  at::Tensor gradient;  // of qkv
};

Result run(const at::Tensor& qkv, std::int64_t heads, const at::Tensor& gradient, bool own) {
  const ReferenceKernelsGuard guard(!own);
  const at::Tensor leaf = qkv.detach().clone().requires_grad_(true);
  // As it comes out of a layer, and not the leaf itself.
  const at::Tensor mixed = causal_attention(leaf.mul(1), heads);
  mixed.backward(gradient);
  return {mixed.detach(), leaf.grad()};
}

// How far a number of this format may be from what it stands for, as a part of the largest one.
double rounding(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kBFloat16:
      return std::ldexp(1.0, -8);
    case at::kHalf:
      return std::ldexp(1.0, -11);
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

double distance(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual.to(at::kDouble) - expected).abs().max() / expected.abs().max()).item<double>();
}

// Number format; sequence; heads; features of a head.
using Parameters = std::tuple<at::ScalarType, std::int64_t, std::int64_t, std::int64_t>;
class AttentionEquals : public testing::TestWithParam<Parameters> {};

// Against ATen's in float64, of what the format holds.
TEST_P(AttentionEquals, Atens) {
  const auto [dtype, sequence, heads, features] = GetParam();
  at::manual_seed(7);
  const at::Tensor qkv = (2 * at::randn({3, sequence, 3 * heads * features})).to(dtype);
  const at::Tensor gradient = at::randn({3, sequence, heads * features}).to(dtype);
  const Result expected = run(qkv.to(at::kDouble), heads, gradient.to(at::kDouble), false);
  const Result found = run(qkv, heads, gradient, true);
  EXPECT_EQ(found.mixed.scalar_type(), dtype);
  EXPECT_EQ(found.mixed.sizes(), expected.mixed.sizes());
  const double bound = 16 * rounding(dtype);
  EXPECT_LE(distance(found.mixed, expected.mixed), bound);
  EXPECT_LE(distance(found.gradient, expected.gradient), bound);
}

// Sequences of one block of queries, of several, and such that end within one; widths that fill
// their vectors and such that do not.
INSTANTIATE_TEST_SUITE_P(, AttentionEquals,
                         testing::Combine(testing::Values(at::kFloat, at::kDouble, at::kBFloat16,
                                                          at::kHalf),
                                          testing::Values(1, 5, 64, 65, 200), testing::Values(1, 3),
                                          testing::Values(3, 16, 64)));

TEST(Attention, ComputesInFloat32WhatIsStoredIn16Bits) {
  at::manual_seed(7);
  const at::Tensor qkv = (2 * at::randn({2, 70, 3 * 32})).to(at::kBFloat16);
  if (!takes_own_attention(qkv)) return;  // the processor has matrix units
  const at::Tensor gradient = at::randn({2, 70, 32}).to(at::kBFloat16);
  const Result wide = run(qkv.to(at::kFloat), 2, gradient.to(at::kFloat), true);
  const Result narrow = run(qkv, 2, gradient, true);
  EXPECT_TRUE(narrow.mixed.equal(wide.mixed.to(at::kBFloat16)));
  EXPECT_TRUE(narrow.gradient.equal(wide.gradient.to(at::kBFloat16)));
}

TEST(Attention, IsTheSameOnSeveralThreads) {
  at::manual_seed(7);
  const at::Tensor qkv = at::randn({8, 96, 3 * 64});
  const at::Tensor gradient = at::randn({8, 96, 64});
  const Result on_two = run(qkv, 4, gradient, true);
  const SingleThread one;
  const Result on_one = run(qkv, 4, gradient, true);
  EXPECT_TRUE(on_one.mixed.equal(on_two.mixed));
  EXPECT_TRUE(on_one.gradient.equal(on_two.gradient));
}

// The largest score decides, and no power overflows or becomes what is not a number.
TEST(Attention, TakesScoresFarApart) {
  at::Tensor qkv = at::zeros({1, 3, 3, 1, 2});
  qkv.select(2, 0).fill_(300);               // each query
  qkv.select(2, 1).select(1, 1).fill_(300);  // the second key
  qkv.select(2, 2).select(1, 1).fill_(5);    // and its value
  const Result found = run(qkv.view({1, 3, 6}), 1, at::ones({1, 3, 2}), true);
  EXPECT_TRUE(
      found.mixed.equal(at::tensor({0., 0., 5., 5., 5., 5.}).view({1, 3, 2}).to(at::kFloat)));
  EXPECT_TRUE(found.gradient.isfinite().all().item<bool>());
}

TEST(Attention, SeesNothingOfLaterPositions) {
  at::manual_seed(7);
  at::Tensor qkv = at::randn({1, 100, 3 * 8});
  const at::Tensor before = run(qkv, 1, at::ones({1, 100, 8}), true).mixed;
  qkv.slice(1, 70).fill_(1e4);
  const at::Tensor after = run(qkv, 1, at::ones({1, 100, 8}), true).mixed;
  EXPECT_TRUE(after.slice(1, 0, 70).equal(before.slice(1, 0, 70)));
}

template <typename T>
std::vector<T> attended(const kernels::AttentionKernels<T>& attention) {
  const kernels::AttentionShape shape = kernels::attention_shape(70, 40);
  const auto matrix = [&](int seed) {
    at::manual_seed(seed);
    const at::Tensor values =
        at::zeros({shape.sequence, shape.row}, c10::CppTypeToScalarType<T>::value);
    values.slice(1, 0, shape.features).normal_();
    return values;
  };
  const at::Tensor query = matrix(1);
  const at::Tensor key = matrix(2);
  const at::Tensor value = matrix(3);
  const at::Tensor gradient = matrix(4);
  at::Tensor results = at::empty({4, shape.sequence, shape.row}, query.options());
  std::vector<T> scratch(static_cast<std::size_t>(backward_scratch(shape)));
  const auto result = [&](int index) { return results[index].template mutable_data_ptr<T>(); };
  attention.forward({query.template const_data_ptr<T>(), key.template const_data_ptr<T>(),
                     value.template const_data_ptr<T>(), result(0), scratch.data()},
                    shape);
  attention.backward({query.template const_data_ptr<T>(), key.template const_data_ptr<T>(),
                      value.template const_data_ptr<T>(), gradient.template const_data_ptr<T>(),
                      result(1), result(2), result(3), scratch.data()},
                     shape);
  const T* const all = results.template const_data_ptr<T>();
  return {all, all + results.numel()};
}

template <typename T>
void expect_alike(const kernels::AttentionKernels<T>& first,
                  const kernels::AttentionKernels<T>& second) {
  const std::vector<T> expected = attended(first);
  const std::vector<T> found = attended(second);
  T largest = 0;
  for (const T value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 64 * std::numeric_limits<T>::epsilon() * largest) << i;
  }
}

TEST(AttentionKernels, EveryInstructionSetComputesTheSame) {
  const auto all = kernels::choices();
  for (const kernels::Variant* choice : all) {
    expect_alike(all[0]->of_float.attention, choice->of_float.attention);
    expect_alike(all[0]->of_double.attention, choice->of_double.attention);
  }
}

}  // namespace
}  // namespace stratagem::models
