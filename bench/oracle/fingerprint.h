// Fingerprints of tensors; bench/proof/evidence.h defines what they are.
#pragma once

#include "bench/proof/evidence.h"
#include "strategies/state.h"

namespace stratagem::bench {

/// Returns the fingerprints of the elements that these pieces have, by entry.
Fingerprints fingerprints_of(const strategies::StatePieces& pieces);

/// Returns the fingerprints of whole entries, without those of gradients.
Fingerprints fingerprints_of(const strategies::StateDictionary& state);

}  // namespace stratagem::bench
