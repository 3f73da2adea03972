#include "models/cpu_kernels/row_functions.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/kernels/row_kernels.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "tests/models/reference_values.h"

namespace stratagem::models::row_functions_test {
namespace {

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Returns the function's value and its derivatives, in float64.
std::vector<at::Tensor> evaluated(const Function& function, std::vector<at::Tensor> inputs,
                                  bool reference) {
  const ReferenceKernelsGuard guard(reference);
  for (at::Tensor& input : inputs) input = input.detach().clone().requires_grad_();
  const at::Tensor value = function(inputs);
  value.backward(uniform(77, value.sizes()).to(value.scalar_type()));
  std::vector<at::Tensor> all = {value.detach().to(at::kDouble)};
  for (const at::Tensor& input : inputs) all.push_back(input.grad().to(at::kDouble));
  return all;
}

void expect_reference(const Function& function, const std::vector<at::Tensor>& inputs) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    SCOPED_TRACE(at::toString(type));
    std::vector<at::Tensor> rounded;
    for (const at::Tensor& input : inputs) rounded.push_back(input.to(type));
    const auto own = evaluated(function, rounded, /*reference=*/false);
    const auto atens = evaluated(function, rounded, /*reference=*/true);
    const double tolerance = type == at::kDouble ? 1e-12 : type == at::kFloat ? 2e-5 : 0.1;
    for (std::size_t each = 0; each < own.size(); ++each) {
      EXPECT_TRUE(at::allclose(own[each], atens[each], tolerance, tolerance)) << each;
    }
  }
}

TEST(RowFunctions, RmsNormIsAtens) {
  const Function function = [](const auto& of) { return rms_norm(of[0], of[1]); };
  for (const std::int64_t features : {2, 37, 64, 130}) {
    expect_reference(function, {uniform(1, {3, 5, features}), uniform(2, {features}) + 1});
  }
}

TEST(RowFunctions, GatedSiluIsAtens) {
  const Function function = [](const auto& of) { return gated_silu(of[0]); };
  for (const std::int64_t hidden : {1, 37, 64, 130}) {
    expect_reference(function, {200 * uniform(1, {2, 3, 2 * hidden})});
  }
}

TEST(RowFunctions, SpreadHeadsIsAtens) {
  for (const auto& [groups, queries, features] :
       {std::tuple{1, 1, 2}, std::tuple{2, 3, 6}, std::tuple{4, 2, 64}}) {
    const at::Tensor turns = 6 * uniform(5, {7, 1, 1, features / 2});
    const Function function = [&, groups = groups, queries = queries](const auto& of) {
      const at::ScalarType type = of[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
      return spread_heads(of[0], {turns.cos().to(type), turns.sin().to(type)}, {groups, queries});
    };
    expect_reference(function, {uniform(1, {2, 7, groups * (queries + 2) * features})});
  }
}

TEST(RowFunctions, RowsOfAViewAreItsOwn) {
  const at::Tensor wide = uniform(1, {4, 6, 20});
  const at::Tensor weight = uniform(2, {10}) + 1;
  const at::Tensor part = wide.narrow(2, 5, 10);
  EXPECT_TRUE(at::equal(rms_norm(part, weight), rms_norm(part.contiguous(), weight)));
  EXPECT_TRUE(at::equal(gated_silu(part), gated_silu(part.contiguous())));
}

TEST(RowFunctions, ThreadsShareRows) {
  const Function norm = [](const auto& of) { return rms_norm(of[0], of[1]); };
  const std::vector<at::Tensor> inputs = {uniform(1, {64, 1024}), uniform(2, {1024}) + 1};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = evaluated(norm, inputs, /*reference=*/false);
  at::set_num_threads(4);
  const auto four = evaluated(norm, inputs, /*reference=*/false);
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(one[0], four[0]));
  EXPECT_TRUE(at::equal(one[1], four[1]));
  EXPECT_TRUE(at::allclose(one[2], four[2], 1e-13, 1e-13)) << "summed in another order";
}

/// Runs every kernel of a set on the same numbers.
template <typename T>
std::vector<at::Tensor> results_of(kernels::InstructionSet set) {
  constexpr std::int64_t rows = 6;
  constexpr std::int64_t features = 44;
  const auto type = c10::CppTypeToScalarType<T>::value;
  const at::Tensor x = uniform(1, {rows, 2 * features}).to(type);
  const at::Tensor weight = uniform(2, {2 * features}).to(type);
  const at::Tensor gradient = uniform(3, {rows, 2 * features}).to(type);
  std::vector<at::Tensor> all;
  const auto made = [&](std::int64_t count) {
    all.push_back(at::zeros({count}, type));
    return all.back().template mutable_data_ptr<T>();
  };
  const auto* from = x.const_data_ptr<T>();
  const kernels::RowKernels<T>& own = kernels::kernels_of<kernels::RowKernels<T>>(set);
  T* y = made(rows * 2 * features);
  T* inverse = made(rows);
  own.rms_norm({from, weight.const_data_ptr<T>(), y, inverse, static_cast<T>(1e-5)}, rows,
               2 * features);
  T* of_x = made(rows * 2 * features);
  T* of_weight = made(2 * features);
  own.rms_norm_gradients(
      {gradient.const_data_ptr<T>(), from, weight.const_data_ptr<T>(), inverse, of_x, of_weight},
      rows, 2 * features);
  own.gate(from, made(rows * features), rows, features);
  own.gate_gradient(gradient.const_data_ptr<T>(), from, made(rows * 2 * features), rows, features);
  const kernels::GroupedHeads heads{.sequence = 3, .groups = 2, .queries = 2, .features = 10};
  const kernels::Angles<T> angles{weight.const_data_ptr<T>(), gradient.const_data_ptr<T>()};
  T* spread = made(rows * 120);
  own.spread_heads(from, spread, angles, heads, 0, rows);
  own.gather_heads(spread, made(rows * 80), angles, heads, 0, rows);
  const std::vector<std::int64_t> keys = {1, -2, 3, 0, 1'000'000'007, -5};
  own.drop({from, keys.data(), made(rows * 2 * features), std::uint64_t{1} << 31U, T(2)}, rows,
           2 * features);
  return all;
}

template <typename T>
void expect_equal_sets(double tolerance) {
  const auto baseline = results_of<T>(kernels::InstructionSet::baseline);
  for (const kernels::InstructionSet set : kernels::supported_sets()) {
    const auto found = results_of<T>(set);
    for (std::size_t each = 0; each < found.size(); ++each) {
      EXPECT_TRUE(at::allclose(found[each], baseline[each], tolerance, tolerance))
          << each << " of " << static_cast<int>(set);
    }
  }
}

TEST(RowKernels, EveryInstructionSetComputesTheSame) {
  expect_equal_sets<float>(1e-5);
  expect_equal_sets<double>(1e-13);
}

}  // namespace
}  // namespace stratagem::models::row_functions_test
