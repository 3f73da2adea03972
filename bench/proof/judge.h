// Judges a launch's own steps.
#pragma once

#include <string>

#include "bench/proof/evidence.h"
#include "reports/record.h"

namespace stratagem::bench {

/// A right row may be this many times as far from the float64 trajectory as one device in the row's
/// number format.
inline constexpr double rounded_factor = 8;
/// Each update is rounded when it is stored. Over n steps these roundings may add up to this many
/// times the unit roundoff times the root of n, relative to an entry's norm.
inline constexpr double stored_factor = 3;
/// Entries of a kind are magnified alike. This share of them stays below their usual error.
inline constexpr double usual_share = 0.9;

/// Compares the loss of each step, and each entry of the last state, with the float64 trajectory.
///
/// A loss may differ by the largest of three bounds: the reference's tolerance, and the largest
/// error so far of the rounded and of the shaken trajectory, each times its factor. An entry may
/// differ by the larger of two: the error of the rounded trajectory times its factor, plus the
/// rounding of what is stored, plus the undecided share of its change, plus one flipped sign of a
/// parameter's element; or the error of the shaken trajectory times its factor. The error of a
/// trajectory in an entry is at least the usual one of the entry's kind (parameters, running
/// statistics, each of the optimizer's). The numbers of steps of the optimizer and of a BatchNorm
/// are exact.
reports::Proof judge(const Evidence& launch, const Reference& reference);

/// Names the first step in which two launches have different losses; empty if they agree bit for
/// bit in the steps that both have.
std::string difference_of_launches(const Evidence& one, const Evidence& other);

}  // namespace stratagem::bench
