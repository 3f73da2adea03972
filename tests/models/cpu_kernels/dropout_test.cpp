// Dropout: its masks, its derivative, and that masks depend on places alone.
#include "models/cpu_kernels/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models::dropout_test {
namespace {

constexpr SamplePlace usual = {.seed = 3, .batch = 5, .first_row = 8};

at::Tensor dropped(const at::Tensor& x, const SamplePlace& place = usual, double rate = 0.25,
                   const char* site = "blocks.0.mlp.down") {
  const SamplePlaceGuard guard(place);
  return placed_dropout(x, rate, site);
}

TEST(Dropout, SetsTheRateOfElementsToZeroAndScalesTheOthers) {
  const at::Tensor y = dropped(at::ones({16, 32, 100}, at::kDouble));
  const at::Tensor kept = y.ne(0);
  EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 0.75, 0.01);
  EXPECT_TRUE(at::allclose(y.masked_select(kept), at::full({1}, 1 / 0.75, at::kDouble)));
  // No sample, position or feature is special.
  for (const std::int64_t dimension : {0, 1, 2}) {
    const at::Tensor means = kept.to(at::kDouble).transpose(0, dimension).flatten(1).mean(1);
    EXPECT_NEAR(means.min().item<double>(), 0.75, 0.12);
    EXPECT_NEAR(means.max().item<double>(), 0.75, 0.12);
  }
}

TEST(Dropout, OwnLoopsComputeTheBitsOfAten) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor x = at::arange(3 * 5 * 37, type).view({3, 37, 5}).transpose(1, 2);
    const at::Tensor own = dropped(x);
    const ReferenceKernelsGuard reference;
    EXPECT_TRUE(at::equal(own, dropped(x)));
  }
}

TEST(Dropout, HalfPrecisionHasTheSameMask) {
  const at::Tensor x = at::ones({2, 4, 50}, at::kDouble);
  const at::Tensor half = dropped(x.to(at::kBFloat16));
  EXPECT_EQ(half.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(half.ne(0), dropped(x).ne(0)));
}

TEST(Dropout, PartsOfSamplesAndPositionsHaveTheMasksOfTheWhole) {
  const at::Tensor x = at::ones({4, 6, 10}, at::kDouble);
  const at::Tensor whole = dropped(x);
  SamplePlace place = usual;
  place.first_row += 1;
  place.first_position = 2;
  const at::Tensor part = dropped(x.narrow(0, 1, 2).narrow(1, 2, 3), place);
  EXPECT_TRUE(at::equal(part, whole.narrow(0, 1, 2).narrow(1, 2, 3)));
}

TEST(Dropout, RowsThatWereDealtToReplicasHaveTheSamplesOfOneDevice) {
  const auto samples = [](std::int64_t rows, std::int64_t replicas) {
    const SamplePlace place{.rows = rows, .dealt_to = replicas};
    std::vector<std::int64_t> found;
    for (std::int64_t row = 0; row < rows; ++row) found.push_back(place.sample_of(row));
    return found;
  };
  EXPECT_EQ(samples(4, 1), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(samples(6, 2), (std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(samples(7, 3), (std::vector<std::int64_t>{0, 3, 6, 1, 4, 2, 5}));
  EXPECT_EQ(samples(2, 3), (std::vector<std::int64_t>{0, 1}));
}

TEST(Dropout, EachPlaceHasItsOwnMask) {
  const at::Tensor x = at::ones({4, 8, 64}, at::kDouble);
  const at::Tensor first = dropped(x);
  SamplePlace seed = usual;
  seed.seed += 1;
  SamplePlace batch = usual;
  batch.batch += 1;
  for (const at::Tensor& other :
       {dropped(x, seed), dropped(x, batch), dropped(x, usual, 0.25, "blocks.1.mlp.down")}) {
    // Independent masks agree with probability 0.75^2 + 0.25^2.
    EXPECT_NEAR(first.eq(other).to(at::kDouble).mean().item<double>(), 0.625, 0.05);
  }
}

TEST(Dropout, TheGradientHasTheMask) {
  for (const bool reference : {false, true}) {
    const ReferenceKernelsGuard kernels(reference);
    const at::Tensor x = at::randn({2, 3, 20}, at::kDouble).requires_grad_(true);
    const at::Tensor y = dropped(x);
    const at::Tensor gradient = at::randn_like(y);
    y.backward(gradient);
    const at::Tensor scale = dropped(at::ones({2, 3, 20}, at::kDouble));
    EXPECT_TRUE(at::allclose(x.grad(), gradient * scale));
  }
}

TEST(Dropout, NeedsAPlaceUnlessTheRateIsZero) {
  const at::Tensor x = at::ones({1, 1, 1});
  EXPECT_THROW(placed_dropout(x, 0.5, "here"), std::logic_error);
  EXPECT_TRUE(placed_dropout(x, 0, "here").is_same(x));
}

}  // namespace
}  // namespace stratagem::models::dropout_test
