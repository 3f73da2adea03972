#include "models/cpu_kernels/attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "models/cpu_kernels/kernels/attention_kernels.h"
#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::attention_test {
namespace {

struct Result {
  at::Tensor mixed;
  at::Tensor gradient;  // of qkv
};

using Attention = at::Tensor (*)(const at::Tensor& qkv, std::int64_t heads);

Result run(Attention attention, const at::Tensor& qkv, std::int64_t heads,
           const at::Tensor& gradient) {
  const at::Tensor leaf = qkv.detach().clone().requires_grad_(true);
  // As it comes out of a layer, and not the leaf itself.
  const at::Tensor mixed = attention(leaf.mul(1), heads);
  mixed.backward(gradient);
  return {mixed.detach(), leaf.grad()};
}

/// By our kernel, also where a layer would take ATen's.
Result own(const at::Tensor& qkv, std::int64_t heads, const at::Tensor& gradient) {
  return run(own_causal_attention, qkv, heads, gradient);
}

Result atens(const at::Tensor& qkv, std::int64_t heads, const at::Tensor& gradient) {
  const ReferenceKernelsGuard guard(true);
  return run(causal_attention, qkv, heads, gradient);
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
  const Result expected = atens(qkv.to(at::kDouble), heads, gradient.to(at::kDouble));
  const double bound = 16 * rounding(dtype);
  using Named = std::pair<const char*, at::Tensor (*)(const at::Tensor&, std::int64_t)>;
  for (const auto& [name, attention] :
       {Named("own", own_causal_attention), Named("a layer's", causal_attention)}) {
    SCOPED_TRACE(name);
    const Result found = run(attention, qkv, heads, gradient);
    EXPECT_EQ(found.mixed.scalar_type(), dtype);
    EXPECT_EQ(found.mixed.sizes(), expected.mixed.sizes());
    EXPECT_LE(distance(found.mixed, expected.mixed), bound);
    EXPECT_LE(distance(found.gradient, expected.gradient), bound);
  }
}

// Sequences of one block of queries, of several, and such that end within one; widths that fill
// their vectors and such that do not.
INSTANTIATE_TEST_SUITE_P(, AttentionEquals,
                         testing::Combine(testing::Values(at::kFloat, at::kDouble, at::kBFloat16,
                                                          at::kHalf),
                                          testing::Values(1, 5, 64, 65, 200), testing::Values(1, 3),
                                          testing::Values(3, 16, 64)));

TEST(Attention, OfALayerIsOursInFloat32AndFloat64) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor qkv = at::zeros({1, 4, 6}, type);
    EXPECT_TRUE(takes_own_attention(qkv)) << type;
    const ReferenceKernelsGuard guard(true);
    EXPECT_FALSE(takes_own_attention(qkv)) << type;
  }
}

// Heads of 12 features: scores are divided by a number that rounds.
TEST(Attention, ComputesInFloat32WhatIsStoredIn16Bits) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    at::manual_seed(7);
    const at::Tensor qkv = (2 * at::randn({2, 70, 3 * 24})).to(type);
    const at::Tensor gradient = at::randn({2, 70, 24}).to(type);
    const Result wide = own(qkv.to(at::kFloat), 2, gradient.to(at::kFloat));
    const Result narrow = own(qkv, 2, gradient);
    EXPECT_TRUE(narrow.mixed.equal(wide.mixed.to(type))) << type;
    EXPECT_TRUE(narrow.gradient.equal(wide.gradient.to(type))) << type;
  }
}

TEST(Attention, IsTheSameOnSeveralThreads) {
  at::manual_seed(7);
  const at::Tensor qkv = at::randn({8, 96, 3 * 64});
  const at::Tensor gradient = at::randn({8, 96, 64});
  const Result on_two = own(qkv, 4, gradient);
  const SingleThread one;
  const Result on_one = own(qkv, 4, gradient);
  EXPECT_TRUE(on_one.mixed.equal(on_two.mixed));
  EXPECT_TRUE(on_one.gradient.equal(on_two.gradient));
}

// The largest score decides, and no power overflows or becomes what is not a number.
TEST(Attention, TakesScoresFarApart) {
  at::Tensor qkv = at::zeros({1, 3, 3, 1, 2});
  qkv.select(2, 0).fill_(300);               // each query
  qkv.select(2, 1).select(1, 1).fill_(300);  // the second key
  qkv.select(2, 2).select(1, 1).fill_(5);    // and its value
  const Result found = own(qkv.view({1, 3, 6}), 1, at::ones({1, 3, 2}));
  EXPECT_TRUE(
      found.mixed.equal(at::tensor({0., 0., 5., 5., 5., 5.}).view({1, 3, 2}).to(at::kFloat)));
  EXPECT_TRUE(found.gradient.isfinite().all().item<bool>());
}

TEST(Attention, SeesNothingOfLaterPositions) {
  at::manual_seed(7);
  at::Tensor qkv = at::randn({1, 100, 3 * 8});
  const at::Tensor before = own(qkv, 1, at::ones({1, 100, 8})).mixed;
  qkv.slice(1, 70).fill_(1e4);
  const at::Tensor after = own(qkv, 1, at::ones({1, 100, 8})).mixed;
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
  std::vector<T> scratch(static_cast<std::size_t>(kernels::backward_scratch(shape)));
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
  const auto compare = []<class T>(T) {
    using Kernels = kernels::AttentionKernels<T>;
    const auto& baseline = kernels::kernels_of<Kernels>(kernels::InstructionSet::baseline);
    for (const kernels::InstructionSet set : kernels::supported_sets()) {
      expect_alike(baseline, kernels::kernels_of<Kernels>(set));
    }
  };
  compare(0.0F);
  compare(0.0);
}

}  // namespace
}  // namespace stratagem::models::attention_test
