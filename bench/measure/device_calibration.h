// Measures the devices' peak speed, to which a row's model FLOP utilisation refers.
#pragma once

#include <vector>

#include "bench/measure/calibrator.h"
#include "bench/measure/preparation.h"

namespace stratagem::bench {

/// Measures the peak rates of the rows' devices; gives every row its peak. Returns the facts for
/// the record. A calibration that fails costs the rows their peak, not the measurement.
reports::Values calibrate_devices(std::vector<PreparedRow>& rows,
                                  const MeasureEnvironment& environment, Calibrator& calibrator,
                                  Observer& observer);

}  // namespace stratagem::bench
