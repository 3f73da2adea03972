// The verdict on a launch's own steps.
#pragma once

#include <vector>

#include "bench/proof/evidence.h"
#include "reports/record.h"

namespace stratagem::bench {

/// How many times as far as one device, in the row's arithmetic, a right row may be from the
/// float64 trajectory.
inline constexpr double proof_factor = 8;
/// How many times as far it may be as one device whose parameters were shaken.
inline constexpr double shaken_factor = 2;
/// Entries of a kind are magnified alike: this share of them is less far off than what is usual.
inline constexpr double usual_share = 0.9;

/// Compares the loss of each step, and each entry of the last state, with the float64 trajectory.
/// A loss may be off by `proof_factor` times the largest error of the rounded trajectory so far, by
/// `shaken_factor` times that of the shaken one, or by the reference's tolerance. An entry may be
/// off by `proof_factor` times the larger of that entry's error and of what is usual of its kind
/// (parameters and buffers, each of the optimizer's), by the same of the rounding of what is
/// stored, and by the undecided share of its change; or by `shaken_factor` times what the shaken
/// trajectory is off. The verdict names the first step that differs, and the first entry.
reports::Verdict judge(const Evidence& launch, const Reference& reference);

/// Names the first step in which two launches of a row have another loss; empty where none has.
/// The launches of a row do the same sums in the same order.
std::string difference_of_launches(const Evidence& one, const Evidence& other);

}  // namespace stratagem::bench
