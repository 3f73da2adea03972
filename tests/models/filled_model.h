#pragma once

#include <string>

#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models {

/// float32 on the CPU, contiguous.
inline Model filled_model(const std::string& name, const ModelOptions& options = {},
                          std::uint64_t seed = 0) {
  Model model = find_model(name).make(options);
  for (const auto& layer : model.layers) {
    layer->materialise(seed, at::kCPU, at::kFloat, at::MemoryFormat::Contiguous);
  }
  return model;
}

}  // namespace stratagem::models
