// Compares pipeline schedules of a GPT on two devices with simulation and closed form.
//
// Shows the idle time of each on a model whose stages are nearly equal.
#include "bench/google_benchmark/benchmark_main.h"

namespace {

using stratagem::bench::OptionValues;

/// `cut` gives the devices nearly equal work: the head has the operations of 1.3 blocks.
OptionValues grid(const char* schedules, const char* cut) {
  return {{"strategy", "pipeline"},   {"model", "gpt-small"}, {"devices", "2"},
          {"global_batch_size", "8"}, {"split_size", "1"},    {"schedule", schedules},
          {"optimizer", "adamw"},     {"cut", cut},           {"steps", "2"}};
}

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::benchmark_main(
      argc, argv,
      {.name = "bench_schedules",
       .grids = {grid("naive,gpipe,1f1b,zb_h1,zb_h2", "blocks.5"),
                 grid("interleaved_1f1b", "blocks.3+blocks.5+blocks.7"),
                 grid("zb_v", "blocks.2+blocks.5+blocks.7")}});
}
