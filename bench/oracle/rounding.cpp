#include "bench/oracle/rounding.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

namespace stratagem::bench {
namespace {

constexpr double incomparable = 1e300;

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
  const at::Tensor wanted = expected.to(at::kDouble);
  const double size = wanted.norm().item<double>();
  const double difference = (found.to(at::kDouble) - wanted).norm().item<double>();
  const double distance = size > 0 ? difference / size : difference;
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
