#include "bench/oracle/layer_comparison.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::bench {
namespace {

using models::DeferredWeightGradients;
using models::DeferredWeightGradientsPointer;
using models::NamedTensor;
using models::Shape;

/// A layer that rectifies inside may have a unit within rounding of zero, on either side of it; a
/// wrong kernel is wrong on other inputs, too.
constexpr int attempts = 3;
/// A gradient is masked if the input of a ReLU is nearer to zero than this number of roundings of
/// its largest element.
constexpr double undecided = 16;

/// The inputs of a layer, in the row's format, on the CPU.
struct MicroBatch {
  at::Tensor input;
  at::Tensor addend;
  at::Tensor output_gradient;
};

struct Exercise {
  std::vector<at::Tensor> values;  // of the parameters, then of the buffers
  std::vector<MicroBatch> micro_batches;
};

/// The device and the way in which a layer runs.
struct Place {
  at::Device device;
  at::ScalarType dtype;
  at::MemoryFormat format;
  bool reference;
  bool split_backward;
};

std::vector<NamedTensor> tensors_of(const LayerUnit& unit) {
  std::vector<NamedTensor> all = unit.parameters();
  const std::vector<NamedTensor> buffers = unit.buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

at::Tensor placed(const at::Tensor& tensor, const Place& place) {
  if (!tensor.defined()) return tensor;
  const at::ScalarType dtype = tensor.is_floating_point() ? place.dtype : tensor.scalar_type();
  const at::Tensor moved = tensor.to(place.device, dtype);
  return moved.contiguous(moved.dim() == 4 ? place.format : at::MemoryFormat::Contiguous);
}

void set_values(const LayerUnit& unit, const std::vector<at::Tensor>& values, const Place& place) {
  for (models::Layer* layer : unit.layers) layer->to(place.device, place.dtype, place.format);
  const at::NoGradGuard no_gradient;
  std::size_t index = 0;
  for (NamedTensor& each : tensors_of(unit)) each.tensor.copy_(values[index++]);
}

/// Updates like an optimizer, but exactly in every format.
void update_in_place(const LayerUnit& unit) {
  const at::NoGradGuard no_gradient;
  for (NamedTensor& parameter : unit.parameters()) parameter.tensor.mul_(0.5);
}

/// A result of a layer, on the CPU.
struct Result {
  std::string name;
  at::Tensor tensor;
  bool over_positions = false;  // whether it is a sum over all positions
};

/// Returns outputs and gradients of inputs of both micro-batches, then the parameters' gradients
/// and the buffers.
std::vector<Result> results_of(const LayerUnit& unit, const Exercise& exercise,
                               const Place& place) {
  const models::ReferenceKernelsGuard kernels(place.reference || models::uses_reference_kernels());
  set_values(unit, exercise.values, place);
  std::vector<Result> results;
  const auto keep = [&](std::string name, const at::Tensor& tensor, bool over_positions = false) {
    results.push_back({std::move(name), tensor.defined() ? tensor.detach().to(at::kCPU) : tensor,
                       over_positions});
  };
  for (std::size_t i = 0; i < exercise.micro_batches.size(); ++i) {
    if (i > 0) update_in_place(unit);
    const MicroBatch& given = exercise.micro_batches[i];
    const std::string of = i == 0 ? "" : " of the second micro-batch";
    at::Tensor input = placed(given.input, place).detach();
    at::Tensor addend = placed(given.addend, place);
    if (addend.defined()) addend = addend.detach().requires_grad_(true);
    if (!unit.first) input.requires_grad_(true);
    DeferredWeightGradientsPointer deferred;
    if (place.split_backward) deferred = c10::make_intrusive<DeferredWeightGradients>();
    at::Tensor output;
    {
      const models::DeferWeightGradientsGuard deferring(deferred);
      const models::SamplePlaceGuard of_samples({.batch = static_cast<std::int64_t>(i)});
      output = unit.forward(input, addend);
    }
    keep("output" + of, output);
    if (!output.requires_grad()) continue;
    output.backward(placed(given.output_gradient, place));
    if (deferred) deferred->run();
    if (!unit.first) keep("gradient of the input" + of, input.grad());
    if (addend.defined()) keep("gradient of what is added" + of, addend.grad());
  }
  for (const auto& [name, tensor] : unit.parameters()) {
    keep("gradient of " + name, tensor.grad(), true);
  }
  for (const auto& [name, tensor] : unit.buffers()) keep(name, tensor, true);
  return results;
}

class ExerciseMaker {
 public:
  ExerciseMaker(const OwnArithmetic& own, std::uint64_t seed)
      : own_(own), generator_(at::detail::createCPUGenerator(seed)) {}

  Exercise make(const SizedLayer& layer) {
    const at::NoGradGuard no_gradient;
    const LayerUnit& unit = layer.unit;
    Exercise exercise;
    for (const auto& [name, tensor] : unit.parameters()) {
      const at::Tensor value = tensor.detach().to(at::kCPU, own_.dtype, false, true);
      // With scales of one and shifts of zero, a swap of channels would not show.
      if (value.dim() == 1) value.add_(normal(value.sizes()), 0.1);
      exercise.values.push_back(value);
    }
    for (const auto& [name, tensor] : unit.buffers()) {
      exercise.values.push_back(tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true));
    }
    for (const std::int64_t count : layer.samples) {
      const auto sized = [count](Shape shape) {
        shape.front() = count;
        return shape;
      };
      exercise.micro_batches.push_back(
          {unit.first ? layer.data.narrow(0, 0, count) : normal(sized(unit.input)),
           unit.adds ? normal(sized(unit.output)) : at::Tensor(), normal(sized(unit.output))});
    }
    if (unit.before_relu) mask(unit, exercise);
    return exercise;
  }

 private:
  at::Tensor normal(at::IntArrayRef shape) {
    return at::empty(shape).normal_(0, 1, generator_).to(own_.dtype);
  }

  /// Removes the gradient where rounding decides whether the ReLU lets it pass.
  void mask(const LayerUnit& unit, Exercise& exercise) const {
    const models::ReferenceKernelsGuard reference;
    const Place exact{at::kCPU, at::kDouble, at::MemoryFormat::Contiguous, true, false};
    set_values(unit, exercise.values, exact);
    for (std::size_t i = 0; i < exercise.micro_batches.size(); ++i) {
      if (i > 0) update_in_place(unit);
      MicroBatch& given = exercise.micro_batches[i];
      const at::Tensor size =
          unit.before_relu(placed(given.input, exact), placed(given.addend, exact)).abs();
      given.output_gradient.mul_(size > undecided * own_.roundoff * size.max());
    }
  }

  const OwnArithmetic& own_;
  at::Generator generator_;
};

std::vector<Result> own_results(const LayerUnit& unit, const Exercise& exercise,
                                const OwnArithmetic& own) {
  std::vector<Result> results;
  own.on_device([&] {
    results =
        results_of(unit, exercise, {own.device, own.dtype, own.format, false, own.split_backward});
  });
  return results;
}

std::vector<Result> reference_results(const LayerUnit& unit, const Exercise& exercise,
                                      at::ScalarType dtype) {
  return results_of(unit, exercise, {at::kCPU, dtype, at::MemoryFormat::Contiguous, true, false});
}

double elements(const Shape& shape) {
  double count = 1;
  for (const std::int64_t size : shape) count *= static_cast<double>(size);
  return count;
}

/// The factors by which a layer's sums magnify roundings.
struct Growth {
  double through = 1;  // from an input to an output, or back
  double over_positions = 1;

  double of(const Result& result) const { return result.over_positions ? over_positions : through; }
  Growth at_least(double measured) const {
    return {std::max(through, measured), std::max(over_positions, measured)};
  }
};

Growth growth_of_sums(const SizedLayer& layer, const OwnArithmetic& own) {
  if (own.sums_in_float32()) return {};
  const LayerUnit& unit = layer.unit;
  const double inside = std::max({1.0, static_cast<double>(summed_terms(unit.parameters())),
                                  elements(unit.input) / elements(unit.output)});  // for a mean
  const std::int64_t channels = unit.output.size() == 4 ? unit.output[1] : unit.output.back();
  const double positions = elements(unit.output) / static_cast<double>(channels) /
                           static_cast<double>(unit.output.front());
  const double over_positions =
      std::sqrt(inside + positions * static_cast<double>(layer.samples[0] + layer.samples[1]));
  // A normalised output depends on statistics over all positions.
  return {unit.buffers().empty() ? std::sqrt(inside) : over_positions, over_positions};
}

double largest_distance(const std::vector<Result>& rounded, const std::vector<Result>& exact) {
  double largest = 0;
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    largest = std::max(largest, relative_distance(rounded[i].tensor, exact[i].tensor));
  }
  return largest;
}

/// The bound of results against reference kernels.
struct Bound {
  std::string reference;
  double roundoff;
  Growth growth;
};

void add(Differences& differences, const LayerUnit& unit, const std::vector<Result>& found,
         const std::vector<Result>& expected, const Bound& bound) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    differences.add(fmt::format("{}: {} against {}", unit.name, found[i].name, bound.reference),
                    relative_distance(found[i].tensor, expected[i].tensor),
                    rounding_bound(bound.roundoff, bound.growth.of(found[i])));
  }
}

/// The results in the row's format, and of `reference` in its own.
struct OnExercise {
  OnExercise(const SizedLayer& layer, const OwnArithmetic& own, at::ScalarType reference,
             ExerciseMaker& maker)
      : exercise(maker.make(layer)),
        found(own_results(layer.unit, exercise, own)),
        expected(reference_results(layer.unit, exercise, reference)) {}

  Exercise exercise;
  std::vector<Result> found;
  std::vector<Result> expected;
};

Differences attempt(const SizedLayer& full, const SizedLayer& exact, const OwnArithmetic& own,
                    std::uint64_t seed) {
  constexpr const char* reference = "the reference kernels";
  Differences differences;
  ExerciseMaker maker(own, seed);
  double measured = 0;
  {
    const LayerUnit& unit = exact.unit;
    const OnExercise run(exact, own, at::kDouble, maker);
    const at::ScalarType rounds = lower_of(own.reference);
    const auto rounded = reference_results(unit, run.exercise, rounds);
    // A product is as well conditioned as its sums are, so its reference must keep to the bound.
    if (!unit.is_product) {
      measured = measured_growth(largest_distance(rounded, run.expected), unit_roundoff(rounds));
    }
    const Growth growth = growth_of_sums(exact, own).at_least(measured);
    const bool is_exact = own.reference == at::kDouble;
    add(differences, unit, run.found, run.expected,
        {"float64", (is_exact ? 1 : 2) * own.roundoff, growth});
    if (!is_exact) add(differences, unit, run.found, rounded, {reference, own.roundoff, growth});
  }
  if (full.unit.input == exact.unit.input && full.samples == exact.samples) return differences;
  const OnExercise run(full, own, own.reference, maker);
  add(differences, full.unit, run.found, run.expected,
      {reference, own.roundoff, growth_of_sums(full, own).at_least(measured)});
  return differences;
}

}  // namespace

Differences compare_layer(const SizedLayer& full, const SizedLayer& exact,
                          const OwnArithmetic& own) {
  Differences differences;
  for (std::uint64_t seed = 0; seed < attempts; ++seed) {
    differences = attempt(full, exact, own, seed);
    if (differences.within()) break;
  }
  return differences;
}

}  // namespace stratagem::bench
