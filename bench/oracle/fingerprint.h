// Computes fingerprints of tensors; bench/proof/evidence.h defines them.
#pragma once

#include "bench/proof/evidence.h"
#include "strategies/state.h"

namespace stratagem::bench {

/// Returns the fingerprints of the elements in these pieces, by entry.
Fingerprints fingerprints_of(const strategies::StatePieces& pieces);

/// Returns the fingerprints of whole entries, without those of gradients.
Fingerprints fingerprints_of(const strategies::StateDictionary& state);

}  // namespace stratagem::bench
