// Do the special paths of 1x1 convolutions in models/convolution.h still pay, and for which shapes?
//
// Each row runs one of ResNet-50's pointwise convolutions (128-pixel images, float32,
// channels_last, one thread) forward and backward: plain, folded and as one product, by turns, so
// that a drift of the machine meets all alike. The row's time is that of the path convolution()
// chooses. Counters: milliseconds a call of each path, plain_over_fold and plain_over_product
// (above 1 that path pays), and chosen_over_best: above 1 another path would have been faster.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

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

using Path = stratagem::models::ConvolutionPath;

constexpr std::array<Path, 3> kPaths{Path::plain, Path::folded, Path::product};

at::Tensor forward(const Problem& problem, Path path) {
  switch (path) {
    case Path::folded:
      return stratagem::models::folded_pointwise_convolution(problem.input, problem.weight);
    case Path::product:
      return stratagem::models::product_pointwise_convolution(problem.input, problem.weight, 1);
    case Path::plain:
      break;
  }
  return at::conv2d(problem.input, problem.weight);
}

// Seconds of one forward and backward pass.
double measure(Problem& problem, Path path) {
  problem.input.mutable_grad().reset();
  problem.weight.mutable_grad().reset();
  const Clock::time_point start = Clock::now();
  forward(problem, path).backward(problem.output_gradient);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void add_counters(benchmark::State& state, const std::array<double, 3>& seconds, Path chosen) {
  const auto [plain, folded, product] = seconds;
  const auto milliseconds = [](double sum) {
    return benchmark::Counter(sum * 1e3, benchmark::Counter::kAvgIterations);
  };
  state.counters["plain_ms"] = milliseconds(plain);
  state.counters["fold_ms"] = milliseconds(folded);
  state.counters["product_ms"] = milliseconds(product);
  state.counters["plain_over_fold"] = plain / folded;
  state.counters["plain_over_product"] = plain / product;
  state.counters["chosen_over_best"] =
      seconds[static_cast<std::size_t>(chosen)] / std::min({plain, folded, product});
}

void pointwise(benchmark::State& state) {
  at::set_num_threads(1);
  Problem problem = make_problem(state);
  const Path chosen = stratagem::models::convolution_path(problem.input, problem.weight, 1, 0);
  for (const Path path : kPaths) {
    measure(problem, path);
  }
  std::array<double, 3> seconds{};
  for (auto iteration : state) {
    for (const Path path : kPaths) {
      const double one = measure(problem, path);
      seconds[static_cast<std::size_t>(path)] += one;
      if (path == chosen) {
        state.SetIterationTime(one);
      }
    }
  }
  add_counters(state, seconds, chosen);
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
