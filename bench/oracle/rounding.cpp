#include "bench/oracle/rounding.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace stratagem::bench {
namespace {

constexpr double incomparable = 1e300;

struct Squares {
  double expected = 0;
  double difference = 0;
};

double squared_norm(const at::Tensor& tensor) {
  const double norm = tensor.norm().item<double>();
  return norm * norm;
}

/// Sums in blocks: a language model's logits in float64 would take more memory than its step.
void add_squares(Squares& sums, const at::Tensor& found, const at::Tensor& expected) {
  constexpr std::int64_t block = 1 << 20;
  if (expected.numel() > block) {
    const std::int64_t size = expected.size(0);
    if (size == 1) return add_squares(sums, found.squeeze(0), expected.squeeze(0));
    add_squares(sums, found.narrow(0, 0, size / 2), expected.narrow(0, 0, size / 2));
    add_squares(sums, found.narrow(0, size / 2, size - size / 2),
                expected.narrow(0, size / 2, size - size / 2));
    return;
  }
  const at::Tensor wanted = expected.to(at::kDouble);
  sums.expected += squared_norm(wanted);
  sums.difference += squared_norm(found.to(at::kDouble) - wanted);
}

}  // namespace

double unit_roundoff(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return 0x1p-53;
    case at::kHalf:
      return 0x1p-11;
    case at::kBFloat16:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

double relative_distance(const at::Tensor& found, const at::Tensor& expected) {
  if (!found.defined() || found.sizes() != expected.sizes()) return incomparable;
  const at::NoGradGuard no_gradient;
  Squares sums;
  add_squares(sums, found, expected);
  const double difference = std::sqrt(sums.difference);
  const double distance = sums.expected > 0 ? difference / std::sqrt(sums.expected) : difference;
  return std::isfinite(distance) ? distance : incomparable;
}

double relative_distance(double found, double expected) {
  return relative_distance(at::scalar_tensor(found, at::kDouble),
                           at::scalar_tensor(expected, at::kDouble));
}

void Differences::add(const std::string& what, double error, double bound) {
  if (!where_.empty() && error * bound_ <= error_ * bound) return;
  error_ = error;
  bound_ = bound;
  where_ = what;
}

void Differences::add(const std::string& part, const Differences& others) {
  if (!others.where_.empty()) add(part + others.where_, others.error_, others.bound_);
}

reports::Verdict Differences::verdict() const {
  reports::Verdict verdict{.oracle = {},
                           .scope = {},
                           .max_relative_error = error_,
                           .tolerance = bound_,
                           .passed = within(),
                           .message = {}};
  if (!verdict.passed) {
    verdict.message =
        fmt::format("{} differs by {:.2g} of its norm, more than {:.2g}", where_, error_, bound_);
  }
  return verdict;
}

}  // namespace stratagem::bench
