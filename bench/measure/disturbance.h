// What disturbed a launch, by what it ran beside (reports::Conditions).
#pragma once

#include <string>

#include "bench/config/config.h"
#include "reports/record.h"

namespace stratagem::bench {

/// The mark of a launch that something disturbed.
inline constexpr const char* disturbed_mark = "disturbed";

/// Canaries can be compared where this is equal: the devices that run it at once.
std::string canary_devices(const Config& config);

/// The slowest device's time, before or after, whichever is less; 0 without a canary.
double canary_ms(const reports::Conditions& conditions);

/// In words; empty when nothing did. A launch is disturbed when its canary takes more than 5%
/// longer than `reference_ms`, or other programs used more than 5% of the processors.
std::string disturbance_of(const reports::Conditions& conditions, double reference_ms);

}  // namespace stratagem::bench
