// Does the 1x1 fold of models/convolution.h still pay, and up to which batch size?
//
// Each row runs one of ResNet-50's pointwise convolutions (128-pixel images, float32,
// channels_last, one thread) forward and backward, plain and folded by turns, so that a drift of
// the machine meets both alike. The row's time is the folded one; its counters are both times a
// call, their ratio plain_over_fold (above 1 the fold pays), and taken: whether convolution() takes
// the fold for this shape.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>

#include <chrono>

#include "models/convolution.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Problem {
  at::Tensor input;
  at::Tensor weight;
  at::Tensor output_gradient;
};

Problem make_problem(const benchmark::State& state) {
  const auto format = at::MemoryFormat::ChannelsLast;
  const std::int64_t batch = state.range(3);
  const std::int64_t size = state.range(2);
  Problem problem;
  problem.input = at::randn({batch, state.range(0), size, size}).contiguous(format);
  problem.weight = at::randn({state.range(1), state.range(0), 1, 1}).contiguous(format);
  problem.output_gradient = at::randn({batch, state.range(1), size, size}).contiguous(format);
  problem.input.requires_grad_(true);
  problem.weight.requires_grad_(true);
  return problem;
}

// Seconds of one forward and backward pass.
double measure(Problem& problem, bool fold) {
  problem.input.mutable_grad().reset();
  problem.weight.mutable_grad().reset();
  const Clock::time_point start = Clock::now();
  const at::Tensor output =
      fold ? stratagem::models::folded_pointwise_convolution(problem.input, problem.weight)
           : at::conv2d(problem.input, problem.weight);
  output.backward(problem.output_gradient);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void pointwise(benchmark::State& state) {
  at::set_num_threads(1);
  Problem problem = make_problem(state);
  measure(problem, false);
  measure(problem, true);
  double plain = 0;
  double folded = 0;
  for (auto iteration : state) {
    plain += measure(problem, false);
    const double one = measure(problem, true);
    state.SetIterationTime(one);
    folded += one;
  }
  state.counters["plain_ms"] = benchmark::Counter(plain * 1e3, benchmark::Counter::kAvgIterations);
  state.counters["fold_ms"] = benchmark::Counter(folded * 1e3, benchmark::Counter::kAvgIterations);
  state.counters["taken"] =
      stratagem::models::takes_fold(problem.input, problem.weight, 1, 0) ? 1 : 0;
  state.counters["plain_over_fold"] = plain / folded;
}

// Channels in, channels out, pixels a side; then the batch size.
void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"in", "out", "image", "batch"});
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{64, 256, 32},
                                                 {256, 64, 32},
                                                 {512, 128, 16},
                                                 {256, 1024, 8},
                                                 {512, 2048, 4}}) {
    for (const std::int64_t batch : {1, 2, 4, 8, 12, 15, 16, 24}) {
      benchmark->Args({shape[0], shape[1], shape[2], batch});
    }
  }
}

BENCHMARK(pointwise)->Apply(shapes)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
