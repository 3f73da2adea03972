// Reads fields of JSON objects strictly: what is there has the right type or the error names the
// place; what is absent or null keeps its default, so that older files stay readable.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace stratagem::reports::json_fields {

/// "an object", "a number", ... as messages call a value.
std::string kind_of(const nlohmann::json& value);

/// Throws std::invalid_argument: "<where>: expected <wanted>, found <kind of value>".
[[noreturn]] void wrong_type(const std::string& where, const std::string& wanted,
                             const nlohmann::json& value);

void convert(const nlohmann::json& value, const std::string& where, bool& target);
void convert(const nlohmann::json& value, const std::string& where, int& target);
void convert(const nlohmann::json& value, const std::string& where, std::int64_t& target);
void convert(const nlohmann::json& value, const std::string& where, double& target);
void convert(const nlohmann::json& value, const std::string& where, std::string& target);

template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::vector<T>& target) {
  if (!value.is_array()) {
    wrong_type(where, "a list", value);
  }
  target.clear();
  for (std::size_t index = 0; index < value.size(); ++index) {
    convert(value[index], where + "[" + std::to_string(index) + "]", target.emplace_back());
  }
}

template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::optional<T>& target) {
  convert(value, where, target.emplace());
}

/// Throws std::invalid_argument unless `value` is an object.
void require_object(const nlohmann::json& value, const std::string& where);

/// The member, or nullptr where it is absent or null.
const nlohmann::json* member(const nlohmann::json& object, const char* key);

template <class T>
void read(const nlohmann::json& object, const char* key, const std::string& where, T& target) {
  if (const nlohmann::json* value = member(object, key)) {
    convert(*value, where + "." + key, target);
  }
}

/// Throws std::logic_error naming the first number below `value` that is NaN or infinite. JSON has
/// no way to write one.
template <class Json>
void require_finite(const Json& value, const std::string& where) {
  if (value.is_number_float() && !std::isfinite(value.template get<double>())) {
    throw std::logic_error(where + " is not a finite number, which JSON cannot hold");
  }
  if (value.is_array()) {
    for (std::size_t index = 0; index < value.size(); ++index) {
      require_finite(value[index], where + "[" + std::to_string(index) + "]");
    }
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      require_finite(item, where.empty() ? key : where + "." + key);
    }
  }
}

}  // namespace stratagem::reports::json_fields
