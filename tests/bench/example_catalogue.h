// The catalogue that the tests of options and grids share: the shape of the real one, smaller.
#pragma once

#include "bench/config/catalogue.h"

namespace stratagem::bench {

inline Catalogue example_catalogue() {
  Catalogue catalogue;
  catalogue.strategies = {{"single", {}, false},
                          {"model_parallel", {"cut", "partition"}, true},
                          {"pipeline", {"split_size", "schedule", "cut", "partition"}, true}};
  catalogue.models = {
      {"resnet50", true, 128, 32}, {"resnet18", true, 64, 32}, {"mlp", false, 0, 0}};
  catalogue.schedules = {{"1f1b"}, {"gpipe"}, {"naive"}};
  return catalogue;
}

}  // namespace stratagem::bench
