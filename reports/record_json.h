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

nlohmann::ordered_json to_json(const TimelineEvent& event);
nlohmann::ordered_json to_json(const std::vector<TimelineEvent>& timeline);
nlohmann::ordered_json to_json(const Breakdown& breakdown);
nlohmann::ordered_json to_json(const DeviceRecord& device);
nlohmann::ordered_json to_json(const CollectiveCount& count);
nlohmann::ordered_json to_json(const Verification& verification);
nlohmann::ordered_json to_json(const Error& error);
nlohmann::ordered_json to_json(const Repetition& repetition);
nlohmann::ordered_json to_json(const Values& values);

/// `where` opens the messages: "results.json: benchmarks[3].stratagem".
TimelineEvent timeline_event_from_json(const nlohmann::json& value, const std::string& where);
std::vector<TimelineEvent> timeline_from_json(const nlohmann::json& value,
                                              const std::string& where);
DeviceRecord device_record_from_json(const nlohmann::json& value, const std::string& where);
Verification verification_from_json(const nlohmann::json& value, const std::string& where);
Error error_from_json(const nlohmann::json& value, const std::string& where);
Repetition repetition_from_json(const nlohmann::json& value, const std::string& where);
Values values_from_json(const nlohmann::ordered_json& value, const std::string& where);

}  // namespace stratagem::reports
