// Adds causes or remedies to messages of the standard library and the system.
#pragma once

#include <string>
#include <string_view>

namespace stratagem::runtime {

/// Returns the message with the cause or the remedy that it lacks.
inline std::string explained(std::string message) {
  struct Explanation {
    std::string_view text;
    std::string_view means;
  };
  for (const auto& [text, means] : {
           Explanation{"std::bad_alloc", "out of memory"},
           Explanation{"Too many open files", "too many open files; raise the limit: ulimit -n"},
       }) {
    const auto found = message.find(text);
    if (found != std::string::npos) message.replace(found, text.size(), means);
  }
  return message;
}

}  // namespace stratagem::runtime
