#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/cpu_kernels/kernels/batch_norm_kernels.h"
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels::batch_norm_kernels_test {
namespace {

// Rows that are summed at once and more; channels that fill vectors, that do not, that are fewer.
struct Size {
  std::int64_t rows;
  std::int64_t channels;
};
constexpr std::array sizes = {Size{300, 37}, Size{1, 1},   Size{1, 5},    Size{5, 1},
                              Size{2, 64},   Size{7, 3},   Size{256, 16}, Size{257, 7},
                              Size{513, 8},  Size{64, 17}, Size{3, 130}};

// What every kernel makes of the same rows, one after the other: [values].
template <typename T>
std::vector<at::Tensor> outputs_of(const BatchNormKernels<T>& all, const Size& size) {
  const auto type = c10::CppTypeToScalarType<T>::value;
  const auto [rows, channels] = size;
  at::manual_seed(1);
  const at::Tensor x = at::randn({rows, channels}, type);
  const at::Tensor other = at::randn({rows, channels}, type);
  const at::Tensor columns = at::rand({5, channels}, type) + 0.1;
  const auto column = [&](int index) { return columns[index].const_data_ptr<T>(); };
  std::vector<T> scratch(static_cast<std::size_t>(3 * channels));
  std::vector<at::Tensor> outputs;
  const auto add = [&, columns_of = channels](std::int64_t count, at::ScalarType of) {
    outputs.push_back(at::zeros({count, columns_of}, of));
    return outputs.back();
  };
  const at::Tensor sums = add(2, at::kDouble);
  auto* const of_moments = sums.mutable_data_ptr<double>();
  all.moments(x.const_data_ptr<T>(), rows, channels, scratch.data(),
              {of_moments, of_moments + channels});
  for (const bool adds : {false, true}) {
    for (const bool rectify : {false, true}) {
      all.normalise({x.const_data_ptr<T>(), adds ? other.const_data_ptr<T>() : nullptr, column(0),
                     column(1), add(rows, type).template mutable_data_ptr<T>(), rectify},
                    rows, channels);
    }
  }
  for (const auto how : {ReluMask::no, ReluMask::recomputed, ReluMask::from_output}) {
    const bool writes = how == ReluMask::from_output;
    const at::Tensor totals = add(2, at::kDouble);
    auto* const of_channels = totals.mutable_data_ptr<double>();
    T* const passed = writes ? add(rows, type).template mutable_data_ptr<T>() : nullptr;
    all.gradient_sums(
        {other.const_data_ptr<T>(), x.const_data_ptr<T>(), writes ? x.const_data_ptr<T>() : nullptr,
         column(2), column(0), column(1), passed, of_channels, of_channels + channels, how},
        rows, channels, scratch.data());
    if (writes) continue;
    all.input_gradient(
        {other.const_data_ptr<T>(), x.const_data_ptr<T>(), column(2), column(0), column(1),
         column(3), column(4), add(rows, type).template mutable_data_ptr<T>(), how},
        rows, channels);
  }
  return outputs;
}

// One rounds a product before it is added to, another does not; sums are in another order.
template <typename T>
void expect_alike(const BatchNormKernels<T>& one, const BatchNormKernels<T>& other) {
  for (const Size& size : sizes) {
    SCOPED_TRACE(testing::Message() << size.rows << " rows of " << size.channels);
    const std::vector<at::Tensor> expected = outputs_of(one, size);
    const std::vector<at::Tensor> found = outputs_of(other, size);
    const double tolerance = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double largest = expected[i].abs().max().item<double>();
      EXPECT_LE((found[i] - expected[i]).abs().max().item<double>(), tolerance * largest)
          << "output " << i;
      if (size.rows > 2 && size.channels > 2) {
        EXPECT_GT(largest, 0.1) << "output " << i;
      }
    }
  }
}

TEST(BatchNormKernels, EveryInstructionSetComputesTheSame) {
  const auto compare = []<class T>(T) {
    const auto& baseline = kernels_of<BatchNormKernels<T>>(InstructionSet::baseline);
    for (const InstructionSet set : supported_sets()) {
      expect_alike(baseline, kernels_of<BatchNormKernels<T>>(set));
    }
  };
  compare(0.0F);
  compare(0.0);
}

}  // namespace
}  // namespace stratagem::models::kernels::batch_norm_kernels_test
