#pragma once

#include <cstdint>

#include "models/model.h"

namespace stratagem::models {

/// Number of trained values.
inline std::int64_t parameter_count(LayerSpan layers) {
  std::int64_t count = 0;
  for (const NamedTensor& parameter : parameters(layers)) count += parameter.tensor.numel();
  return count;
}

}  // namespace stratagem::models
