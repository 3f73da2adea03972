// Every strategy on models of three kinds, small enough for a minute or two.
#include "bench/benchmark_main.h"

namespace {

using stratagem::bench::OptionValues;

OptionValues grid(const char* model, const char* batch, const char* image, const char* split) {
  OptionValues values = {{"strategy", "single,model_parallel,pipeline"},
                         {"model", model},
                         {"devices", "2"},
                         {"global_batch_size", batch},
                         {"split_size", split},
                         {"steps", "3"},
                         {"repetitions", "3"}};
  if (*image != '\0') values.emplace_back("image_size", image);
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::benchmark_main(
      argc, argv,
      {.name = "bench_strategies",
       .summary = "single, single on all cores, model parallel and pipeline on small models",
       .grids = {grid("resnet50", "16", "64", "4"), grid("resnet18", "32", "64", "8"),
                 grid("mlp", "256", "", "64")}});
}
