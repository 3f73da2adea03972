// A stage's part of a strategy's state.
#pragma once

#include <vector>

#include "strategies/stages/stage.h"
#include "strategies/state.h"

namespace stratagem::stages {

/// Copies the stage's parameters, gradients, buffers and optimizer state to the CPU. The stage's
/// device must be idle.
void add_state(Stage& stage, strategies::StateDictionary& all);

/// Adds the stage's parameters, optimizer state and, on demand, gradients as pieces, and `buffers`.
/// The stage's device must be idle.
void add_pieces(Stage& stage, const std::vector<models::NamedTensor>& buffers, bool with_gradients,
                strategies::StatePieces& all);

/// Loads parameters, buffers and optimizer state. Throws std::invalid_argument for a missing entry
/// or another shape.
void load_state(Stage& stage, const strategies::StateDictionary& state);

}  // namespace stratagem::stages
