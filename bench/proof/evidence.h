// Evidence is what a launch's steps computed; a reference is what one device computes in the same
// steps.
//
// A state is identified by fingerprints. Each sums up one entry of it, so the fingerprints of the
// ranks' parts add up to that of the whole, and no rank gathers a state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/fields.h"

namespace stratagem::bench {

/// Sums over an entry's elements, in float64.
struct Fingerprint {
  static constexpr std::size_t projections = 8;

  double squares = 0;
  /// The sums with signs that the entry's name and the elements' places decide.
  std::vector<double> projected = std::vector<double>(projections);

  double norm() const;
  void add(const Fingerprint& part);

  STRATAGEM_FIELDS(squares, projected)
};

/// Estimates the 2-norm of the difference of two entries: the root of the mean square of the
/// projections' differences (Achlioptas 2003, "Database-friendly random projections", Theorem 1.1).
double distance(const Fingerprint& one, const Fingerprint& other);

/// Parameters, buffers and optimizer state by the names of the single-device model.
using Fingerprints = std::map<std::string, Fingerprint>;

/// The outcome of a launch's steps, those of the warm-up included.
struct Evidence {
  std::vector<double> loss = {};           // [step]
  std::vector<std::int64_t> skipped = {};  // steps whose update was left out for an overflow
  Fingerprints state = {};                 // after the last step

  STRATAGEM_FIELDS(loss, skipped, state)
};

/// The state after `steps` steps.
struct StateAt {
  std::int64_t steps = 0;
  Fingerprints state = {};

  STRATAGEM_FIELDS(steps, state)
};

/// The outcome of one device's steps in some arithmetic.
struct Trajectory {
  std::vector<double> loss = {};     // [step]
  std::vector<StateAt> states = {};  // the initial one, and the requested ones

  /// Returns null if there is none after `steps` steps.
  const Fingerprints* after(std::int64_t steps) const;

  STRATAGEM_FIELDS(loss, states)
};

/// The steps of one device with which a row's launches are compared.
struct Reference {
  Trajectory exact = {};  // steps in float64
  /// The steps in the row's number format; empty if that is float64.
  Trajectory rounded = {};
  /// The steps in the same format, from parameters that were changed by many roundings: of several
  /// such trajectories, each loss and entry is the one that is furthest from the exact one. Empty
  /// if none was requested.
  Trajectory shaken = {};
  std::int64_t shakings = 0;  // the number of these trajectories
  /// True if rectified units are likely to lie within a rounding of zero, few enough to matter:
  /// `shaken` then shows more than `rounded`.
  bool magnifies = false;
  double coarser = 1;   // a rounding of the row over one of `rounded`
  double roundoff = 0;  // unit roundoff of the format in which the row keeps parameters
  /// The error of a parameter's element whose gradient lies within a rounding of zero, if the
  /// update has the gradient's sign; 0 if it is proportional to the gradient.
  double sign_flip = 0;
  double undecided = 0;       // the share of a gradient that rectified units near zero may change
  double shaken_factor = 2;   // a right row may be this many times as far as `shaken`
  double loss_tolerance = 0;  // relative: allowed for a loss in any case
  std::string oracle = {};    // "one device in float64, 8 batches"

  STRATAGEM_FIELDS(exact, rounded, shaken, shakings, magnifies, coarser, roundoff, sign_flip,
                   undecided, shaken_factor, loss_tolerance, oracle)
};

}  // namespace stratagem::bench
