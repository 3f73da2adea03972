#include "models/registry/named_entries.h"

namespace stratagem::models {

std::vector<std::string>& registration_errors() {
  static std::vector<std::string> errors;
  return errors;
}

}  // namespace stratagem::models
