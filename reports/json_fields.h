// Converts structs to and from JSON objects, by their list of fields (reports/fields.h).
//
// Readers refuse a value of the wrong type and name its place. A lenient reading accepts older
// files.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "reports/fields.h"

namespace stratagem::reports::json_fields {

/// Returns "an object", "a number", ...: the name of a value in messages.
std::string kind_of(const nlohmann::json& value);

/// Throws std::invalid_argument: "<where>: expected <wanted>, found <kind of value>".
[[noreturn]] void wrong_type(const std::string& where, const std::string& wanted,
                             const nlohmann::json& value);

/// Parses a text. Throws std::invalid_argument, "<where>: the key ... occurs twice; keep one", if
/// one object has a key twice, of which nlohmann::json::parse() takes the last, and
/// nlohmann::json::exception if the text is not valid.
nlohmann::json parse_distinct(const std::string& text, const std::string& where);

/// A lenient reading keeps the default of what is absent or null. An exact one requires every
/// field, and no other.
enum class Reading { lenient, exact };

void convert(const nlohmann::json& value, const std::string& where, bool& target,
             Reading reading = Reading::lenient);
void convert(const nlohmann::json& value, const std::string& where, int& target,
             Reading reading = Reading::lenient);
void convert(const nlohmann::json& value, const std::string& where, std::int64_t& target,
             Reading reading = Reading::lenient);
void convert(const nlohmann::json& value, const std::string& where, double& target,
             Reading reading = Reading::lenient);
void convert(const nlohmann::json& value, const std::string& where, std::string& target,
             Reading reading = Reading::lenient);

template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::vector<T>& target,
             Reading reading = Reading::lenient);
template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::optional<T>& target,
             Reading reading = Reading::lenient);
template <class T>
void convert(const nlohmann::json& value, const std::string& where,
             std::map<std::string, T>& target, Reading reading = Reading::lenient);
template <HasFields T>
void convert(const nlohmann::json& value, const std::string& where, T& target,
             Reading reading = Reading::lenient);

/// Throws std::invalid_argument unless `value` is an object.
void require_object(const nlohmann::json& value, const std::string& where);

/// Returns the member, or nullptr if it is absent or null.
const nlohmann::json* member(const nlohmann::json& object, const char* key);

/// Returns "repetition.loss", "measure job: config": a member's place, which begins messages.
std::string place_of(const std::string& where, const std::string& member);

template <class T>
void read(const nlohmann::json& object, const char* key, const std::string& where, T& target) {
  if (const nlohmann::json* value = member(object, key)) {
    convert(*value, place_of(where, key), target);
  }
}

template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::vector<T>& target,
             Reading reading) {
  if (!value.is_array()) wrong_type(where, "a list", value);
  target.clear();
  for (std::size_t index = 0; index < value.size(); ++index) {
    convert(value[index], where + "[" + std::to_string(index) + "]", target.emplace_back(),
            reading);
  }
}

template <class T>
void convert(const nlohmann::json& value, const std::string& where, std::optional<T>& target,
             Reading reading) {
  target.reset();
  if (!value.is_null()) convert(value, where, target.emplace(), reading);
}

template <class T>
void convert(const nlohmann::json& value, const std::string& where,
             std::map<std::string, T>& target, Reading reading) {
  require_object(value, where);
  for (const auto& [key, item] : value.items()) {
    T& entry = target[key];
    if (reading == Reading::lenient && item.is_null()) continue;
    convert(item, place_of(where, key), entry, reading);
  }
}

/// Throws std::invalid_argument: "<place>: is missing".
[[noreturn]] void missing(const std::string& place);

/// Throws std::invalid_argument: "<place>: is not known".
void require_known(const nlohmann::json& object, const std::string& where,
                   const std::set<std::string>& names);

template <HasFields T>
void convert(const nlohmann::json& value, const std::string& where, T& target, Reading reading) {
  require_object(value, where);
  std::set<std::string> names;
  each_field(target, [&](std::string_view name, auto& field) {
    const std::string key(name);
    names.insert(key);
    const std::string place = place_of(where, key);
    const auto found = value.find(key);
    if (reading == Reading::exact && found == value.end()) missing(place);
    if (found == value.end() || (reading == Reading::lenient && found->is_null())) return;
    convert(*found, place, field, reading);
  });
  if (reading == Reading::exact) require_known(value, where, names);
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

/// Returns the value as JSON: a struct as its fields in order, an empty optional as null.
template <class T>
nlohmann::ordered_json json_of(const T& value) {
  if constexpr (HasFields<const T>) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    each_field(value, [&](std::string_view name, const auto& field) {
      object[std::string(name)] = json_of(field);
    });
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

/// Throws std::logic_error naming the first number below `value` that is NaN or infinite, which
/// JSON cannot represent.
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
