// What disturbed a launch, by what it ran beside (reports::Conditions).
#pragma once

#include <string>
#include <utility>

#include "bench/config/config.h"
#include "reports/record.h"

namespace stratagem::bench {

/// How much longer than usual a canary takes that tells of a disturbance.
inline constexpr double slower_canary = 0.05;

using reports::disturbed_mark;

/// Canaries can be compared where this is equal: the devices that run it at once.
std::string canary_devices(const Config& config);

/// The slowest device's time, before and after; 0 without a canary.
std::pair<double, double> canaries_ms(const reports::Conditions& conditions);
/// Whichever is less.
double canary_ms(const reports::Conditions& conditions);

/// In words; empty when nothing did. A launch is disturbed when a canary takes more than 5% longer
/// than it usually does, or other programs used more than 5% of the processors while it lived, or
/// of its own cores while its steps were timed.
std::string disturbance_of(const reports::Conditions& conditions, double usual_ms);

}  // namespace stratagem::bench
