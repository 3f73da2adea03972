#include "bench/launch/launch_json.h"

namespace stratagem::bench {

nlohmann::json to_json(const RankOutcome& outcome) {
  const reports::Error& error = outcome.launched.error;
  return {{"status", static_cast<int>(outcome.launched.status)},
          {"cause", static_cast<int>(outcome.cause)},
          {"rank", error.rank},
          {"host", error.host},
          {"last_action", error.last_action},
          {"message", error.message}};
}

RankOutcome outcome_from_json(const nlohmann::json& value) {
  RankOutcome outcome;
  outcome.launched.status = static_cast<LaunchStatus>(value.at("status").get<int>());
  outcome.cause = static_cast<RankHandle::FailureCause>(value.at("cause").get<int>());
  outcome.launched.error = {.rank = value.at("rank").get<int>(),
                            .host = value.at("host").get<std::string>(),
                            .last_action = value.at("last_action").get<std::string>(),
                            .message = value.at("message").get<std::string>()};
  return outcome;
}

}  // namespace stratagem::bench
