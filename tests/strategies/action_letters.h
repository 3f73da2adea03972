// The letters of actions, as a schedule prints them.
#pragma once

#include "strategies/schedules/action.h"

namespace stratagem::schedules {

inline constexpr auto F = ActionKind::forward;
inline constexpr auto B = ActionKind::backward;
inline constexpr auto L = ActionKind::copy_input;
inline constexpr auto CF = ActionKind::copy_activation;
inline constexpr auto CB = ActionKind::copy_gradient;
inline constexpr auto O = ActionKind::optimizer;

}  // namespace stratagem::schedules
