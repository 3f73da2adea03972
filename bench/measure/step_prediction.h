// What the simulator makes of a row's stages, to stand beside what was measured.
#pragma once

#include <vector>

#include "bench/measure/calibrator.h"
#include "bench/measure/preparation.h"

namespace stratagem::bench {

/// Whether the simulator knows what the row does: stages and replicas, also those of one process,
/// but neither stages in replicas nor shared layers.
bool can_be_simulated(const Config& config);

/// What the stages of a row that can be simulated cost, from the cache or measured. A row that is
/// oversubscribed gets the costs of a machine with a core for each device.
Calibrated<StageCosts> price_stages(const PreparedRow& row, const MeasureEnvironment& environment,
                                    Calibrator& calibrator);

/// Prices every row that is made of stages, unless it asks for no prediction, and predicts its
/// step.
void predict_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                  Calibrator& calibrator, Observer& observer);

}  // namespace stratagem::bench
