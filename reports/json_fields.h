// Structs as JSON objects, by their list of fields (reports/fields.h).
//
// Reading is strict: what is there has the right type or the error names the place; what is absent
// or null keeps its default, so that older files stay readable.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "reports/fields.h"

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
void convert(const nlohmann::json& value, const std::string& where, std::vector<T>& target);
template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::optional<T>& target);
template <class T>
void convert(const nlohmann::json& value, const std::string& where,
             std::map<std::string, T>& target);
template <HasFields T>
void convert(const nlohmann::json& value, const std::string& where, T& target);

/// Throws std::invalid_argument unless `value` is an object.
void require_object(const nlohmann::json& value, const std::string& where);

/// The member, or nullptr where it is absent or null.
const nlohmann::json* member(const nlohmann::json& object, const char* key);

template <class T>
void read(const nlohmann::json& object, const char* key, const std::string& where, T& target) {
  if (const nlohmann::json* value = member(object, key)) convert(*value, where + "." + key, target);
}

template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::vector<T>& target) {
  if (!value.is_array()) wrong_type(where, "a list", value);
  target.clear();
  for (std::size_t index = 0; index < value.size(); ++index) {
    convert(value[index], where + "[" + std::to_string(index) + "]", target.emplace_back());
  }
}

template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::optional<T>& target) {
  target.reset();
  if (!value.is_null()) convert(value, where, target.emplace());
}

template <class T>
void convert(const nlohmann::json& value, const std::string& where,
             std::map<std::string, T>& target) {
  require_object(value, where);
  for (const auto& [key, item] : value.items()) read(value, key.c_str(), where, target[key]);
}

template <HasFields T>
void convert(const nlohmann::json& value, const std::string& where, T& target) {
  require_object(value, where);
  each_field(target, [&](const char* name, auto& field) { read(value, name, where, field); });
}

template <class T>
T read_as(const nlohmann::json& value, const std::string& where) {
  T target;
  convert(value, where, target);
  return target;
}

template <class T>
nlohmann::ordered_json json_of(const std::optional<T>& value);
template <class T>
nlohmann::ordered_json json_of(const std::vector<T>& values);
template <class T>
nlohmann::ordered_json json_of(const std::map<std::string, T>& values);

/// The value as JSON: of a struct its fields in their order, of an empty optional null.
template <class T>
nlohmann::ordered_json json_of(const T& value) {
  if constexpr (HasFields<const T>) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    each_field(value, [&](const char* name, const auto& field) { object[name] = json_of(field); });
    return object;
  } else {
    return value;
  }
}

template <class T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : nlohmann::ordered_json(nullptr);
}

template <class T>
nlohmann::ordered_json json_of(const std::vector<T>& values) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const T& value : values) array.push_back(json_of(value));
  return array;
}

template <class T>
nlohmann::ordered_json json_of(const std::map<std::string, T>& values) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [key, value] : values) object[key] = json_of(value);
  return object;
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
