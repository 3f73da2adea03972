// Returns the first line of a message, because libraries append stack traces.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace stratagem::runtime {

inline std::string first_line(std::string_view message) {
  return std::string(message.substr(0, message.find('\n')));
}

inline std::string first_line(const std::exception& error) { return first_line(error.what()); }

}  // namespace stratagem::runtime
