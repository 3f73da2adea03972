// The outcome of a rank's worker as text, for controllers that tell one another.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/launch/rank_handle.h"

namespace stratagem::bench {

struct RankOutcome {
  LaunchResult launched;  // without the result of any rank but the first, which nobody reads
  RankHandle::FailureCause cause = RankHandle::FailureCause::failed;
};

nlohmann::json to_json(const RankOutcome& outcome);
RankOutcome outcome_from_json(const nlohmann::json& value);

}  // namespace stratagem::bench
