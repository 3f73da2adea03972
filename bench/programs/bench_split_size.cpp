// Measures the split-size trade-off of ResNet-50 on two CPU devices.
//
// It runs on one device, split over two, and pipelined with eight micro-batch sizes. Small
// micro-batches overlap better and run slower.
#include "bench/google_benchmark/benchmark_main.h"

int main(int argc, char** argv) {
  namespace bench = stratagem::bench;
  bench::OptionValues sweep = bench::find_preset("cpu").values;
  for (auto& [option, value] : sweep) {
    if (option == "split_size") value = "1,2,3,4,5,6,8,12";
  }
  return bench::benchmark_main(argc, argv, {.name = "bench_split_size", .grids = {sweep}});
}
