// The catalogue that the tests of options and grids share: the shape of the real one, smaller.
#pragma once

#include "bench/config/catalogue.h"

namespace stratagem::bench {

inline Catalogue example_catalogue() {
  Catalogue catalogue;
  catalogue.strategies = {
      {.name = "single"},
      {.name = "model_parallel", .options = {"cut", "partition"}, .multi_device = true},
      {.name = "pipeline",
       .options = {"split_size", "schedule", "cut", "partition"},
       .multi_device = true}};
  catalogue.models = {{.name = "resnet50", .default_image_size = 128, .smallest_image = 32},
                      {.name = "resnet18", .default_image_size = 64, .smallest_image = 32},
                      {.name = "mlp", .input_kind = models::InputKind::vector}};
  catalogue.schedules = {{.name = "1f1b"}, {.name = "gpipe"}, {.name = "naive"}};
  return catalogue;
}

}  // namespace stratagem::bench
