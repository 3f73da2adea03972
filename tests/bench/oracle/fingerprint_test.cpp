// Fingerprints of states, whole and in pieces.
#include "bench/oracle/fingerprint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace stratagem::bench::fingerprint_test {
namespace {

TEST(Fingerprints, OfPiecesAddUpToThatOfTheWhole) {
  const at::Tensor whole = at::randn({6, 5, 4});
  const Fingerprints expected = fingerprints_of(strategies::StateDictionary{{"weight", whole}});
  strategies::StatePieces pieces;
  // Columns of the middle dimension, each cut in two runs.
  for (std::int64_t part = 0; part < 5; ++part) {
    const at::Tensor slice = whole.narrow(1, part, 1);
    const at::Tensor values = slice.contiguous().view({-1});
    const at::Tensor place = at::empty({6, 5, 4}, at::kMeta).narrow(1, part, 1);
    for (const auto& [start, count] : {std::pair{0, 7}, std::pair{7, 17}}) {
      pieces.push_back({.name = "weight",
                        .values = values.narrow(0, start, count),
                        .slice = place,
                        .start = start,
                        .sizes = {6, 5, 4}});
    }
  }
  const Fingerprint found = fingerprints_of(pieces).at("weight");
  EXPECT_LT(distance(found, expected.at("weight")), 1e-12);
  EXPECT_NEAR(found.squares, whole.to(at::kDouble).square().sum().item<double>(), 1e-9);
}

TEST(Fingerprints, DoNotDependOnTheMemoryFormat) {
  const at::Tensor image = at::randn({4, 3, 5, 5});
  const auto of = [](const at::Tensor& tensor) {
    return fingerprints_of(strategies::StateDictionary{{"weight", tensor}}).at("weight");
  };
  const auto last = image.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_LT(distance(of(image), of(last)), 1e-12);
}

TEST(Fingerprints, EstimateTheNormOfADifference) {
  const auto of = [](const std::string& name, const at::Tensor& tensor) {
    return fingerprints_of(strategies::StateDictionary{{name, tensor}}).at(name);
  };
  double ratios = 0;
  constexpr int entries = 50;
  for (int entry = 0; entry < entries; ++entry) {
    const std::string name = "weight" + std::to_string(entry);
    const at::Tensor one = at::randn({200});
    const at::Tensor other = one + 0.01 * at::randn({200});
    const double norm = (one - other).norm().item<double>();
    const double ratio = distance(of(name, one), of(name, other)) / norm;
    EXPECT_GT(ratio, 0.2);
    EXPECT_LT(ratio, 2.5);
    ratios += ratio * ratio / entries;
  }
  EXPECT_NEAR(ratios, 1, 0.3);
}

}  // namespace
}  // namespace stratagem::bench::fingerprint_test
