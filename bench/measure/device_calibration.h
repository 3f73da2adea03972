// How fast the devices are at best: the peak that a row's model FLOP utilisation refers to.
#pragma once

#include <vector>

#include "bench/measure/calibrator.h"
#include "bench/measure/preparation.h"

namespace stratagem::bench {

/// Peak rates of the devices that the rows use; gives every row its peak. Returns the facts for the
/// record. A calibration that fails costs the rows their peak, not the measurement.
reports::Values calibrate_devices(std::vector<PreparedRow>& rows,
                                  const MeasureEnvironment& environment, Calibrator& calibrator,
                                  Observer& observer);

}  // namespace stratagem::bench
