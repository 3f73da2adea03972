// model_parallel: the layers spread over the devices, the whole batch at once, so that one device
// works at a time. It makes room for a larger model, not speed: ideal bubble (p - 1) / p.
#include "strategies/presets/staged.h"

namespace stratagem::presets {
namespace {

const strategies::StrategyRegistration model_parallel_registration{
    staged_entry({.name = "model_parallel",
                  .summary = "layers split over the devices, one works at a time",
                  .usual_dimensions = {"pipeline"},
                  .one_at_a_time = true})};

}  // namespace
}  // namespace stratagem::presets
