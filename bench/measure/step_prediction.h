// Predicts the rows' steps with the simulator, to compare them with the measured ones.
#pragma once

#include <vector>

#include "bench/measure/calibrator.h"
#include "bench/measure/preparation.h"

namespace stratagem::bench {

/// Returns whether the simulator supports the row: stages and replicas, also those of one process,
/// but neither stages in replicas nor shared layers.
bool can_be_simulated(const Config& config);

/// Returns the costs of the stages of a row that can be simulated, from the cache or measured. An
/// oversubscribed row gets the costs of a machine with a core for each device.
Calibrated<StageCosts> price_stages(const PreparedRow& row, const MeasureEnvironment& environment,
                                    Calibrator& calibrator);

/// Prices every row that is made of stages, unless it asks for no prediction, and predicts its
/// step.
void predict_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                  Calibrator& calibrator, Observer& observer);

}  // namespace stratagem::bench
