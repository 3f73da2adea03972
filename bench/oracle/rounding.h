// How far two right computations may be apart in an arithmetic of some precision, and how far two
// found ones are.
//
// A sum of n numbers that is rounded at each addition is off by up to n u of the sum of their
// magnitudes, and by about sqrt(n) u where the roundings are independent of one another; u is the
// unit roundoff of the format (Higham 2002, "Accuracy and Stability of Numerical Algorithms",
// sections 2.8 and 4.2; Higham and Mary 2019, "A New Approach to Probabilistic Rounding Error
// Analysis"). Sums one behind the other add their squares, so n counts the terms of all of them.
// Tensors are compared by the 2-norm of their difference over that of what was expected: in it
// roundings average, and a lane that is wrong still has its part of the norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reports/record.h"

namespace stratagem::bench {

/// Half the distance between 1 and the next larger number.
double unit_roundoff(at::ScalarType dtype);
/// Of TF32, whose numbers have ten bits behind the point.
inline constexpr double tf32_roundoff = 0x1p-11;

/// A format in which the growth of roundings can be measured against float64: this one, or float32.
inline at::ScalarType lower_of(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kFloat : dtype;
}

/// How many of the usual roundings a right computation may be off by.
inline constexpr double safety_factor = 8;

/// `growth` is by how much the computation magnifies a rounding: sqrt(n), or what was measured.
inline double rounding_bound(double roundoff, double growth) {
  return safety_factor * roundoff * growth;
}
/// That of a computation which in an arithmetic of this roundoff is so far from the exact one.
inline double measured_growth(double distance, double roundoff) {
  return std::min(distance, 1.0) / roundoff;  // at most: no digit is left
}

/// The 2-norm of found - expected over that of expected; of zeros the norm itself. More than any
/// bound where they cannot be compared: another shape, or something that is no number.
double relative_distance(const at::Tensor& found, const at::Tensor& expected);
double relative_distance(double found, double expected);

/// Keeps what is nearest to its bound, or furthest beyond.
class Differences {
 public:
  /// `what` is found to be `error` from the right value, of `bound` at most.
  void add(const std::string& what, double error, double bound);
  /// What another has kept, of `part`.
  void add(const std::string& part, const Differences& others);

  double error() const { return error_; }
  double bound() const { return bound_; }
  const std::string& where() const { return where_; }
  bool within() const { return error_ <= bound_; }

  /// Without oracle and scope.
  reports::Verdict verdict() const;

 private:
  double error_ = 0;
  double bound_ = 0;
  std::string where_;
};

}  // namespace stratagem::bench
