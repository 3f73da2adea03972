// Compares the attention kernel with ATen's.
//
// Each row runs one layer's causal attention forward and backward (one thread or two) by ATen and
// by us (models/cpu_kernels/attention.h), alternately, so that a drift of the machine affects both.
// `bits` is the format: 32 float32, 16 bfloat16. The row's time is ours. Counters: milliseconds of
// ATen's, and atens_over_ours: above 1 ours is faster.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

#include "bench/google_benchmark/library_main.h"
#include "bench/programs/by_turns.h"
#include "models/cpu_kernels/attention.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace {

namespace models = stratagem::models;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kFeaturesOfAHead = 64;

struct Problem {
  at::Tensor qkv;       // [n, sequence, 3 features]
  at::Tensor gradient;  // [n, sequence, features]
  std::int64_t heads = 1;
};

Problem problem_of(std::int64_t batch, std::int64_t sequence, std::int64_t heads,
                   at::ScalarType type) {
  const std::int64_t features = heads * kFeaturesOfAHead;
  return {at::randn({batch, sequence, 3 * features}).to(type).requires_grad_(true),
          at::randn({batch, sequence, features}).to(type), heads};
}

double seconds_of(const Problem& problem, bool own) {
  const models::ReferenceKernelsGuard guard(!own);
  problem.qkv.mutable_grad().reset();
  const Clock::time_point start = Clock::now();
  models::causal_attention(problem.qkv, problem.heads).backward(problem.gradient);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void attention(benchmark::State& state) {
  at::set_num_threads(static_cast<int>(state.range(4)));
  const Problem problem = problem_of(state.range(0), state.range(1), state.range(2),
                                     state.range(3) == 16 ? at::kBFloat16 : at::kFloat);
  stratagem::bench::time_by_turns(state, [&](bool own) { return seconds_of(problem, own); });
}

// Shapes of gpt-small, a micro-batch and a whole batch, of gpt2 at its whole length, and of
// gpt-long.
constexpr auto shapes = [](auto* benchmark) {
  benchmark->ArgNames({"batch", "sequence", "heads", "bits", "threads"});
  for (const std::int64_t threads : {1, 2}) {
    for (const std::int64_t bits : {32, 16}) {
      benchmark->Args({2, 128, 8, bits, threads});
      benchmark->Args({8, 128, 8, bits, threads});
      benchmark->Args({1, 1024, 12, bits, threads});
      for (const std::int64_t sequence : {2048, 4096, 8192}) {
        benchmark->Args({1, sequence, 8, bits, threads});
      }
    }
  }
};

BENCHMARK(attention)->Apply(shapes)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::library_main(argc, argv, "bench_attention");
}
