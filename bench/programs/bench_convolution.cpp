// Compares the paths of convolutions (models/cpu_kernels/convolution.h) by shape.
//
// Each row runs one of ResNet-50's convolutions (128-pixel images, float32, channels_last, one
// thread or two) forward and backward: plain, packed (the weights are packed once, as for the
// micro-batches of a step) and, if it is 1x1, folded and as one product, if it is 3x3, by
// Winograd's method; alternately, so that a drift of the machine affects all. The row's time is
// that of the path convolution() chooses. Counters: milliseconds a call of each path,
// plain_over_chosen (above 1 the choice is faster) and chosen_over_best (above 1 another path would
// have been faster).

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/google_benchmark/library_main.h"
#include "models/cpu_kernels/convolution.h"
#include "models/cpu_kernels/packed_convolution.h"
#include "models/cpu_kernels/winograd_convolution.h"

namespace {

namespace models = stratagem::models;
using Clock = std::chrono::steady_clock;
using Path = models::ConvolutionPath;

struct Problem {
  at::Tensor input;
  at::Tensor weight;
  at::Tensor output_gradient;
  std::int64_t padding = 0;
  models::PackedWeightsPointer packed = c10::make_intrusive<models::PackedWeights>();
};

Problem make_problem(const benchmark::State& state) {
  const auto format = at::MemoryFormat::ChannelsLast;
  const std::int64_t in = state.range(0);
  const std::int64_t out = state.range(1);
  const std::int64_t kernel = state.range(2);
  const std::int64_t size = state.range(3);
  const std::int64_t batch = state.range(4);
  Problem problem;
  problem.input = at::randn({batch, in, size, size}).contiguous(format).requires_grad_(true);
  problem.weight = at::randn({out, in, kernel, kernel}).contiguous(format).requires_grad_(true);
  problem.output_gradient = at::randn({batch, out, size, size}).contiguous(format);
  problem.padding = kernel / 2;
  return problem;
}

const std::map<Path, std::string>& paths_for(const Problem& problem) {
  static const std::map<Path, std::string> spatial = {
      {Path::plain, "plain_ms"}, {Path::packed, "packed_ms"}, {Path::winograd, "winograd_ms"}};
  static const std::map<Path, std::string> pointwise = {{Path::plain, "plain_ms"},
                                                        {Path::packed, "packed_ms"},
                                                        {Path::folded, "fold_ms"},
                                                        {Path::product, "product_ms"}};
  return problem.padding == 0 ? pointwise : spatial;
}

at::Tensor forward(const Problem& problem, Path path) {
  switch (path) {
    case Path::folded:
      return models::folded_pointwise_convolution(problem.input, problem.weight);
    case Path::product:
      return models::product_pointwise_convolution(problem.input, problem.weight, 1);
    case Path::winograd:
      return models::winograd_convolution(problem.input, problem.weight, problem.packed);
    case Path::packed:
      return models::packed_convolution(problem.input, problem.weight, {1, problem.padding},
                                        problem.packed);
    case Path::plain:
      break;
  }
  return at::conv2d(problem.input, problem.weight, {}, 1, problem.padding);
}

// Returns the seconds of one forward and backward pass.
double measure(Problem& problem, Path path) {
  problem.input.mutable_grad().reset();
  problem.weight.mutable_grad().reset();
  const Clock::time_point start = Clock::now();
  forward(problem, path).backward(problem.output_gradient);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void add_counters(benchmark::State& state, const Problem& problem,
                  const std::map<Path, double>& seconds, Path chosen) {
  for (const auto& [path, name] : paths_for(problem)) {
    state.counters[name] =
        benchmark::Counter(seconds.at(path) * 1e3, benchmark::Counter::kAvgIterations);
  }
  const auto fastest = std::ranges::min_element(
      seconds, [](const auto& left, const auto& right) { return left.second < right.second; });
  state.counters["plain_over_chosen"] = seconds.at(Path::plain) / seconds.at(chosen);
  state.counters["chosen_over_best"] = seconds.at(chosen) / fastest->second;
}

void convolution(benchmark::State& state) {
  at::set_num_threads(static_cast<int>(state.range(5)));
  Problem problem = make_problem(state);
  const Path chosen = models::convolution_path(problem.input, problem.weight, 1, problem.padding);
  for (const auto& [path, _] : paths_for(problem)) measure(problem, path);
  std::map<Path, double> seconds;
  for (auto iteration : state) {
    for (const auto& [path, _] : paths_for(problem)) {
      const double one = measure(problem, path);
      seconds[path] += one;
      if (path == chosen) state.SetIterationTime(one);
    }
  }
  add_counters(state, problem, seconds, chosen);
}

// Channels in, channels out, kernel, pixels a side; then the batch size and the threads.
constexpr auto shapes = [](auto* benchmark) {
  benchmark->ArgNames({"in", "out", "kernel", "image", "batch", "threads"});
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{64, 256, 1, 32},
                                                 {256, 64, 1, 32},
                                                 {512, 128, 1, 16},
                                                 {256, 1024, 1, 8},
                                                 {512, 2048, 1, 4},
                                                 {2048, 512, 1, 4},
                                                 {64, 64, 3, 32},
                                                 {128, 128, 3, 16},
                                                 {256, 256, 3, 8},
                                                 {512, 512, 3, 4}}) {
    for (const std::int64_t batch : {1, 2, 4, 8, 12, 15, 16, 24, 48}) {
      for (const std::int64_t threads : {1, 2}) {
        benchmark->Args({shape[0], shape[1], shape[2], shape[3], batch, threads});
      }
    }
  }
};

BENCHMARK(convolution)->Apply(shapes)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::library_main(argc, argv, "bench_convolution");
}
