// Finds what disturbed a launch, from its conditions (reports::Conditions).
#pragma once

#include <string>
#include <utility>

#include "bench/config/config.h"
#include "reports/record.h"

namespace stratagem::bench {

/// The relative slowdown of a canary from which on it shows a disturbance.
inline constexpr double slower_canary = 0.05;

using reports::disturbed_mark;

/// Returns the devices that run a canary at once; only canaries with equal ones are compared.
std::string canary_devices(const Config& config);

/// Returns the slowest device's time, before and after; 0 without a canary.
std::pair<double, double> canaries_ms(const reports::Conditions& conditions);
/// Returns the lesser one.
double canary_ms(const reports::Conditions& conditions);

/// Describes the disturbance; empty if there was none. A launch is disturbed if a canary takes more
/// than 5% longer than usual, or other programs used more than 5% of the processors while it lived,
/// or of its own cores while its steps were timed.
std::string disturbance_of(const reports::Conditions& conditions, double usual_ms);

}  // namespace stratagem::bench
