#include "models/registry/registry.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stratagem::models {

// The registry is inside a function, because other files' entries arrive at static initialisation.
Registry<ModelEntry>& ModelEntry::registry() {
  static Registry<ModelEntry> instance("model");
  return instance;
}

Registry<ModelFormat>& ModelFormat::registry() {
  static Registry<ModelFormat> instance("model format");
  return instance;
}

const ModelEntry& find_model(std::string_view name) { return ModelEntry::registry().find(name); }

std::vector<std::string> model_names() { return ModelEntry::registry().names(); }

std::int64_t scaled_width(std::int64_t base, double width) {
  if (!(width > 0) || !std::isfinite(width)) {
    throw std::invalid_argument("width " + std::to_string(width) +
                                " is not a positive multiple of the model's own");
  }
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(base) * width));
}

std::int64_t class_count(const ModelOptions& options, std::int64_t own) {
  if (options.classes < 0) {
    throw std::invalid_argument(
        "classes must be at least 1, or 0 for the model's own number, not " +
        std::to_string(options.classes));
  }
  return options.classes == 0 ? own : options.classes;
}

}  // namespace stratagem::models
