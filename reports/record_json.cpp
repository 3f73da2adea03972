#include "reports/record_json.h"

#include <type_traits>

#include "reports/json_fields.h"

namespace stratagem::reports {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json to_json(const Repetition& repetition) {
  ordered_json object = json_fields::json_of(repetition);
  if (repetition.counters.empty()) object.erase("counters");
  if (repetition.memory_curve.empty()) object.erase("memory_curve");
  if (repetition.predicted_memory_curve.empty()) object.erase("predicted_memory_curve");
  json_fields::require_finite(object, "repetition");
  return object;
}

ordered_json to_json(const Values& values) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : values) {
    ordered_json& entry = object[name];
    std::visit(
        [&entry](const auto& item) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(item)>, std::monostate>) entry = item;
        },
        value);
  }
  return object;
}

Repetition repetition_from_json(const json& value, const std::string& where) {
  return json_fields::read_as<Repetition>(value, where);
}

}  // namespace stratagem::reports
