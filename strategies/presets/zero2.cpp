// zero2: ZeRO stage 2. Every rank trains its share of the batch, and keeps its part of optimizer
// state and gradients (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models").
#include "strategies/presets/zero.h"

namespace stratagem::presets {
namespace {

const strategies::StrategyRegistration zero2_registration{
    zero_entry("zero2", "optimizer state and gradients sharded over replicas", "gradients")};

}  // namespace
}  // namespace stratagem::presets
