// Measures every strategy that fits the devices on ResNet-50 and a GPT.
//
// With these sizes the whole takes a few minutes on two cores.
#include "bench/google_benchmark/benchmark_main.h"

namespace {

using stratagem::bench::OptionValues;

/// Names no strategy, which means all of the registry.
OptionValues grid(const char* model, const char* batch, const char* split) {
  return {{"model", model},
          {"devices", "2"},
          {"global_batch_size", batch},
          {"split_size", split},
          {"steps", "2"}};
}

}  // namespace

int main(int argc, char** argv) {
  OptionValues images = grid("resnet50", "16", "4");
  images.emplace_back("image_size", "64");
  return stratagem::bench::benchmark_main(
      argc, argv, {.name = "bench_strategies", .grids = {images, grid("gpt-small", "8", "2")}});
}
