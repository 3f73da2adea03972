// Reads and writes a repetition in a results file; json_fields.h does the record's other structs.
//
// Both use the names of the results file. Reading accepts absent and unknown fields; for one of the
// wrong type it throws std::invalid_argument with the place. Writing a number that is NaN or
// infinite throws std::logic_error with the field.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/record.h"

namespace stratagem::reports {

nlohmann::ordered_json to_json(const Repetition& repetition);
nlohmann::ordered_json to_json(const Values& values);

/// `where` begins the messages: "repetition".
Repetition repetition_from_json(const nlohmann::json& value, const std::string& where);

}  // namespace stratagem::reports
