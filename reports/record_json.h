// A repetition as JSON: what a results file holds; json_fields.h does the record's other structs.
//
// One spelling for both, the results file's. Reading accepts absent and unknown fields, never one
// of the wrong type: std::invalid_argument names the place. Writing a number that is NaN or
// infinite throws std::logic_error that names the field.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/record.h"

namespace stratagem::reports {

nlohmann::ordered_json to_json(const Repetition& repetition);
nlohmann::ordered_json to_json(const Values& values);

/// `where` opens the messages: "repetition".
Repetition repetition_from_json(const nlohmann::json& value, const std::string& where);

}  // namespace stratagem::reports
