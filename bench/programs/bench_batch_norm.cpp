// Compares the batch normalisation kernels with ATen's.
//
// models/cpu_kernels/batch_norm.h runs it, the sum of a residual block and the ReLU as one. Each
// row runs one of ResNet-50's normalisations forward and backward (float32, one thread or two) by
// ATen and by us, alternately, so that a drift of the machine affects both. `after` is what follows
// it: 0 nothing, 1 a ReLU, 2 a sum and a ReLU. The row's time is ours. Counters: milliseconds of
// ATen's, and atens_over_ours: above 1 ours is faster.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include "bench/google_benchmark/library_main.h"
#include "bench/programs/by_turns.h"
#include "models/cpu_kernels/batch_norm.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace {

namespace models = stratagem::models;
using Clock = std::chrono::steady_clock;

enum After : std::int64_t { nothing, relu, sum_and_relu };

struct Problem {
  at::Tensor x;  // [n, c, h, w], channels_last
  at::Tensor addend;
  at::Tensor gradient;
  models::BatchNormTensors tensors;
  bool relu = false;
};

Problem problem_of(std::int64_t channels, std::int64_t side, std::int64_t batch, After after) {
  Problem problem;
  problem.x = at::randn({batch, channels, side, side})
                  .contiguous(at::MemoryFormat::ChannelsLast)
                  .requires_grad_(true);
  if (after == sum_and_relu) problem.addend = at::randn_like(problem.x).requires_grad_(true);
  problem.gradient = at::randn_like(problem.x);
  problem.tensors = {at::ones({channels}).requires_grad_(true),
                     at::zeros({channels}).requires_grad_(true), at::zeros({channels}),
                     at::ones({channels})};
  problem.relu = after != nothing;
  return problem;
}

double seconds_of(const Problem& problem, bool own) {
  const models::ReferenceKernelsGuard guard(!own);
  for (const at::Tensor& tensor :
       {problem.x, problem.addend, problem.tensors.weight, problem.tensors.bias}) {
    if (tensor.defined()) tensor.mutable_grad().reset();
  }
  const Clock::time_point start = Clock::now();
  const at::Tensor y = models::batch_norm(problem.x, problem.tensors, {},
                                          {.addend = problem.addend, .relu = problem.relu});
  y.backward(problem.gradient);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void batch_norm(benchmark::State& state) {
  at::set_num_threads(static_cast<int>(state.range(4)));
  const Problem problem = problem_of(state.range(0), state.range(1), state.range(2),
                                     static_cast<After>(state.range(3)));
  stratagem::bench::time_by_turns(state, [&](bool own) { return seconds_of(problem, own); });
}

// Shapes of ResNet-50 at 128 pixels: one micro-batch and a whole batch.
constexpr auto shapes = [](auto* benchmark) {
  benchmark->ArgNames({"channels", "side", "batch", "after", "threads"});
  for (const std::int64_t threads : {1, 2}) {
    for (const std::int64_t batch : {8, 48}) {
      for (const auto& [channels, side] : {std::pair{64, 32}, {128, 16}, {256, 8}, {512, 4}}) {
        benchmark->Args({channels, side, batch, relu, threads});
        benchmark->Args({4L * channels, side, batch, sum_and_relu, threads});
        benchmark->Args({4L * channels, side, batch, nothing, threads});
      }
    }
  }
};

BENCHMARK(batch_norm)->Apply(shapes)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::library_main(argc, argv, "bench_batch_norm");
}
