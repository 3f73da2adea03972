// Fingerprints of tensors: see bench/proof/evidence.h.
#pragma once

#include "bench/proof/evidence.h"
#include "strategies/state.h"

namespace stratagem::bench {

/// Of the elements that these pieces have, by entry. Reads each once.
/// Throws std::runtime_error, in one line, for an entry that holds something that is no number.
Fingerprints fingerprints_of(const strategies::StatePieces& pieces);

/// Of whole entries, without gradients.
Fingerprints fingerprints_of(const strategies::StateDictionary& state);

}  // namespace stratagem::bench
