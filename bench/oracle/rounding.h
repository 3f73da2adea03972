// Bounds the distance of two correct computations in an arithmetic of some precision, and measures
// the distance of two given ones.
//
// A sum of n numbers that is rounded at each addition has an error of up to n u of the sum of their
// magnitudes, and of about sqrt(n) u if the roundings are independent of one another; u is the unit
// roundoff of the format (Higham 2002, "Accuracy and Stability of Numerical Algorithms", sections
// 2.8 and 4.2; Higham and Mary 2019, "A New Approach to Probabilistic Rounding Error Analysis").
// The squares of successive sums add up, so n counts the terms of all of them. Tensors are compared
// by the 2-norm of their difference over that of the expected one: in it roundings average, and a
// wrong lane still has its part of the norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reports/record.h"

namespace stratagem::bench {

/// Returns half the distance between 1 and the next larger number.
double unit_roundoff(at::ScalarType dtype);
/// The roundoff of TF32, whose numbers have ten bits after the point.
inline constexpr double tf32_roundoff = 0x1p-11;

/// Returns a format whose growth of roundings is measured against float64: this one or float32.
inline at::ScalarType lower_of(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kFloat : dtype;
}

/// The number of usual roundings that a correct computation may differ by.
inline constexpr double safety_factor = 8;

/// `growth`: by how much the computation magnifies a rounding, sqrt(n) or measured.
inline double rounding_bound(double roundoff, double growth) {
  return safety_factor * roundoff * growth;
}
/// Returns the growth of a computation at this distance from the exact one.
inline double measured_growth(double distance, double roundoff) {
  return std::min(distance, 1.0) / roundoff;  // at most 1: no digit is left
}

/// Returns the 2-norm of found - expected over that of expected, or of zeros the norm itself.
/// Exceeds any bound if they cannot be compared: another shape, or a value that is not a number.
double relative_distance(const at::Tensor& found, const at::Tensor& expected);
double relative_distance(double found, double expected);

/// Keeps the difference nearest to its bound, or furthest beyond.
class Differences {
 public:
  /// Adds the `error` of `what`, with its `bound`.
  void add(const std::string& what, double error, double bound);
  /// Adds another's difference, with the name of `part`.
  void add(const std::string& part, const Differences& others);

  double error() const { return error_; }
  double bound() const { return bound_; }
  const std::string& where() const { return where_; }
  bool within() const { return error_ <= bound_; }

  /// Returns the verdict without oracle and scope.
  reports::Verdict verdict() const;

 private:
  double error_ = 0;
  double bound_ = 0;
  std::string where_;
};

}  // namespace stratagem::bench
