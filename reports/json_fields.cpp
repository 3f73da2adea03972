#include "reports/json_fields.h"

#include <limits>

namespace stratagem::reports::json_fields {

using nlohmann::json;

std::string kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "true or false";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "a whole number";
    case json::value_t::number_float:
      return "a number with a fraction";
    default:
      return "binary data";
  }
}

void wrong_type(const std::string& where, const std::string& wanted, const json& value) {
  throw std::invalid_argument(where + ": expected " + wanted + ", found " + kind_of(value));
}

json parse_distinct(const std::string& text, const std::string& where) {
  using Event = json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of each object that is open
  const auto watch = [&](int /*depth*/, Event event, json& parsed) {
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw std::invalid_argument(where + ": the key " + parsed.dump() + " occurs twice; keep one");
    }
    return true;
  };
  return json::parse(text, watch);
}

void convert(const json& value, const std::string& where, bool& target, Reading /*reading*/) {
  if (!value.is_boolean()) wrong_type(where, "true or false", value);
  target = value.get<bool>();
}

void convert(const json& value, const std::string& where, int& target, Reading /*reading*/) {
  std::int64_t wide = 0;
  convert(value, where, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    throw std::invalid_argument(where + ": " + value.dump() + " is too large");
  }
  target = static_cast<int>(wide);
}

void convert(const json& value, const std::string& where, std::int64_t& target,
             Reading /*reading*/) {
  if (!value.is_number_integer()) wrong_type(where, "a whole number", value);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
    throw std::invalid_argument(where + ": " + value.dump() + " is too large");
  }
  target = value.get<std::int64_t>();
}

void convert(const json& value, const std::string& where, double& target, Reading /*reading*/) {
  if (!value.is_number()) wrong_type(where, "a number", value);
  target = value.get<double>();
}

void convert(const json& value, const std::string& where, std::string& target,
             Reading /*reading*/) {
  if (!value.is_string()) wrong_type(where, "a string", value);
  target = value.get<std::string>();
}

void require_object(const json& value, const std::string& where) {
  if (!value.is_object()) wrong_type(where, "an object", value);
}

std::string place_of(const std::string& where, const std::string& member) {
  const bool is_job = where.ends_with(" job") || where.ends_with(" result");
  return where + (is_job ? ": " : ".") + member;
}

void missing(const std::string& place) { throw std::invalid_argument(place + ": is missing"); }

void require_known(const json& object, const std::string& where,
                   const std::set<std::string>& names) {
  for (const auto& [name, field] : object.items()) {
    if (names.contains(name)) continue;
    throw std::invalid_argument(place_of(where, name) + ": is not known");
  }
}

const json* member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace stratagem::reports::json_fields
