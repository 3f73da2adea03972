// The record's structs as JSON: what workers send to the controller and what a results file holds.
//
// One spelling for both, the results file's. Reading accepts absent and unknown fields, never one
// of the wrong type: std::invalid_argument names the place. Writing a number that is NaN or
// infinite throws std::logic_error that names the field.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/record.h"

namespace stratagem::reports {

nlohmann::ordered_json to_json(const std::vector<TimelineEvent>& timeline);
nlohmann::ordered_json to_json(const DeviceRecord& device);
nlohmann::ordered_json to_json(const Verification& verification);
nlohmann::ordered_json to_json(const Repetition& repetition);
nlohmann::ordered_json to_json(const Values& values);

/// `where` opens the messages: "repetition".
std::vector<TimelineEvent> timeline_from_json(const nlohmann::json& value,
                                              const std::string& where);
DeviceRecord device_record_from_json(const nlohmann::json& value, const std::string& where);
Verification verification_from_json(const nlohmann::json& value, const std::string& where);
Repetition repetition_from_json(const nlohmann::json& value, const std::string& where);

}  // namespace stratagem::reports
