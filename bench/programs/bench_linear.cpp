// Compares the kernels of linear layers (models/cpu_kernels/linear.h) by product.
//
// Each row runs one linear layer's three products (float32, one thread) by ATen and by ours,
// alternately, so that a drift of the machine affects both. The row's time is ours, all three.
// Counters: GFLOP/s of each product on each side, and atens_over_ours: above 1 ours is faster; the
// same for `added`: a later micro-batch's weight gradient, added to the sum of those before.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "bench/google_benchmark/library_main.h"
#include "models/cpu_kernels/linear.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Problem {
  at::Tensor x;         // [rows, in]
  at::Tensor weight;    // [out, in]
  at::Tensor bias;      // [out]
  at::Tensor gradient;  // [rows, out]
  at::Tensor trained;   // [out, in], with a gradient

  Problem(std::int64_t rows, std::int64_t in, std::int64_t out)
      : x(at::randn({rows, in})),
        weight(at::randn({out, in})),
        bias(at::randn({out})),
        gradient(at::randn({rows, out})),
        trained(at::zeros_like(weight).requires_grad_(true)) {
    trained.mutable_grad() = at::zeros_like(weight);
  }
};

// `added`: the weight's gradient of any micro-batch but the first, added to the sum.
enum Product : std::size_t { forward, of_input, of_weight, added };
constexpr std::size_t product_count = 4;
using Seconds = std::array<double, product_count>;

double seconds_of(const std::function<at::Tensor()>& product) {
  const Clock::time_point start = Clock::now();
  product();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Seconds atens(const Problem& problem) {
  return {seconds_of([&] { return at::linear(problem.x, problem.weight, problem.bias); }),
          seconds_of([&] { return at::mm(problem.gradient, problem.weight); }),
          seconds_of([&] { return at::mm(problem.gradient.t(), problem.x); }), seconds_of([&] {
            return problem.trained.mutable_grad().add_(at::mm(problem.gradient.t(), problem.x));
          })};
}

Seconds ours(const Problem& problem) {
  namespace models = stratagem::models;
  return {
      seconds_of([&] { return models::linear_product(problem.x, problem.weight, problem.bias); }),
      seconds_of([&] { return models::linear_input_gradient(problem.gradient, problem.weight); }),
      seconds_of([&] { return models::linear_weight_gradient(problem.x, problem.gradient); }),
      seconds_of([&] {
        return models::accumulated_weight_gradient(problem.trained, problem.x, problem.gradient);
      })};
}

// Returns the time of one step without micro-batches.
double sum(const Seconds& seconds) {
  return seconds[forward] + seconds[of_input] + seconds[of_weight];
}

void add_counters(benchmark::State& state, const char* side, const Seconds& seconds) {
  const double flops = 2.0 * static_cast<double>(state.range(0) * state.range(1) * state.range(2)) *
                       static_cast<double>(state.iterations());
  const auto rate = [&](Product product) { return flops / seconds[product] / 1e9; };
  const std::string prefix = side;
  state.counters[prefix + "_forward"] = rate(forward);
  state.counters[prefix + "_input"] = rate(of_input);
  state.counters[prefix + "_weight"] = rate(of_weight);
  state.counters[prefix + "_added"] = rate(added);
}

void linear(benchmark::State& state) {
  at::set_num_threads(1);
  const Problem problem(state.range(0), state.range(1), state.range(2));
  const at::NoGradGuard no_gradient;
  atens(problem);
  ours(problem);
  Seconds by_aten{};
  Seconds by_us{};
  for (auto iteration : state) {
    const Seconds one = atens(problem);
    const Seconds other = ours(problem);
    for (std::size_t product = 0; product < product_count; ++product) {
      by_aten[product] += one[product];
      by_us[product] += other[product];
    }
    state.SetIterationTime(sum(other));
  }
  add_counters(state, "aten", by_aten);
  add_counters(state, "ours", by_us);
  state.counters["atens_over_ours"] = sum(by_aten) / sum(by_us);
  state.counters["added_atens_over_ours"] = by_aten[added] / by_us[added];
}

// Shapes of gpt-small: rows of one sample, or of eight; in and out of its layers.
constexpr auto shapes = [](auto* benchmark) {
  benchmark->ArgNames({"rows", "in", "out"});
  for (const std::int64_t rows : {128, 1024}) {
    for (const auto& [in, out] :
         {std::pair{512, 1536}, {512, 512}, {512, 2048}, {2048, 512}, {512, 8192}}) {
      benchmark->Args({rows, in, out});
    }
  }
};

BENCHMARK(linear)->Apply(shapes)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::library_main(argc, argv, "bench_linear");
}
