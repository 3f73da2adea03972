#include "models/workload.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "models/datasets/random_bits.h"

namespace stratagem::models {
namespace {

// Scrambles a number; neighbouring seeds and batch numbers give unrelated streams.
std::uint64_t scrambled(std::uint64_t number) {
  return datasets::scrambled(number + datasets::scramble_step);
}

void require_image_size(const ModelEntry& entry, std::int64_t size) {
  if (entry.input_kind == InputKind::image && size < entry.smallest_image) {
    throw std::invalid_argument(fmt::format("image {}x{} is too small for {}: at least {}x{}", size,
                                            size, entry.name, entry.smallest_image,
                                            entry.smallest_image));
  }
}

void require_tokens(const ModelEntry& entry, const WorkloadOptions& options,
                    std::int64_t sequence) {
  if (entry.input_kind != InputKind::tokens) return;
  if (sequence < 1 || sequence > entry.longest_sequence) {
    throw std::invalid_argument("sequence " + std::to_string(sequence) + " does not fit " +
                                entry.name + ": 1 to " + std::to_string(entry.longest_sequence));
  }
  if (options.loss != Loss::cross_entropy) {
    throw std::invalid_argument("loss " + std::string(to_string(options.loss)) + ": " + entry.name +
                                " predicts tokens and needs cross_entropy");
  }
}

void require_targets(const WorkloadOptions& options, std::int64_t classes) {
  if (options.loss != Loss::cross_entropy) return;
  if (options.targets == Targets::real) {
    throw std::invalid_argument(
        "--targets real: --loss cross_entropy needs class targets; use --loss mse");
  }
  if (classes == 1) {
    throw std::invalid_argument("loss cross_entropy: is always 0 with one class; use mse");
  }
}

}  // namespace

std::int64_t Batch::checked_size() const {
  if (size() < 1 || targets.size(0) != size()) {
    throw std::invalid_argument(
        fmt::format("a batch has {} inputs and {} targets: expected equal numbers above 0", size(),
                    targets.size(0)));
  }
  return size();
}

bool Batch::is_same(const Batch& other) const {
  const auto equal = [](const at::Tensor& one, const at::Tensor& two) {
    if (one.is_same(two)) return true;
    return two.defined() && !one.is_alias_of(two) && one.scalar_type() == two.scalar_type() &&
           one.equal(two);
  };
  return equal(inputs, other.inputs) && equal(targets, other.targets);
}

Batch Batch::slice(std::int64_t start, std::int64_t count) const {
  return {inputs.narrow(0, start, count), targets.narrow(0, start, count), number};
}

Workload::Workload(const WorkloadOptions& options)
    : options_(options), entry_(&find_model(options.model)) {
  if (options.batch < 1) {
    throw std::invalid_argument("batch " + std::to_string(options.batch) + " is below 1");
  }
  require_image_size(*entry_, image_size());
  require_tokens(*entry_, options, sequence_length());
  scaled_width(1, options.width);
  require_targets(options, classes());
  Optimizer({}, options.optimizer);
}

std::int64_t Workload::sequence_length() const {
  return options_.sequence_length == 0 ? entry_->usual_sequence() : options_.sequence_length;
}

std::int64_t Workload::image_size() const {
  if (entry_->input_kind != InputKind::image) return 0;
  return options_.image_size == 0 ? entry_->default_image_size : options_.image_size;
}

std::int64_t Workload::classes() const {
  return class_count({.classes = options_.classes}, entry_->classes);
}

std::int64_t Workload::features() const {
  return options_.features == 0 ? entry_->features : options_.features;
}

at::ScalarType Workload::master_dtype() const {
  return options_.mixed && at::isReducedFloatingType(options_.dtype) ? at::kFloat : options_.dtype;
}

Shape Workload::input_shape(std::int64_t batch) const {
  switch (entry_->input_kind) {
    case InputKind::vector:
      return {batch, features()};
    case InputKind::tokens:
      return {batch, sequence_length()};
    case InputKind::image:
      break;
  }
  return {batch, entry_->features, image_size(), image_size()};
}

std::int64_t Workload::parameter_count() const {
  const Model model = make_meta_model();
  std::int64_t count = 0;
  for (const NamedTensor& each : parameters(model.layers)) count += each.tensor.numel();
  return count;
}

Model Workload::make_meta_model() const {
  Model model = entry_->make({.width = options_.width,
                              .classes = options_.classes,
                              .features = options_.features,
                              .bias = options_.bias,
                              .dropout = options_.dropout});
  for (const auto& layer : model.layers) layer->to(at::kCPU, master_dtype(), options_.format);
  return model;
}

void Workload::materialise(Layer& layer, const at::Device& device) const {
  layer.materialise(options_.seed, device, master_dtype(), options_.format);
  layer.to(device, master_dtype(), options_.format);
}

Model Workload::make_model() const {
  Model model = make_meta_model();
  for (const auto& layer : model.layers) materialise(*layer, at::kCPU);
  return model;
}

Batch Workload::make_batch(std::uint64_t index) const {
  const auto number = static_cast<std::int64_t>(index);
  at::Generator generator =
      at::detail::createCPUGenerator(scrambled(scrambled(options_.seed) + index));
  if (entry_->input_kind == InputKind::tokens) {
    const std::int64_t length = sequence_length() + 1;
    const std::uint64_t first = index * static_cast<std::uint64_t>(options_.batch);
    const at::Tensor drawn =
        options_.tokens == TokenSource::text
            ? text_tokens(first, options_.batch, length, classes(), options_.seed)
            : random_tokens(options_.batch, length, classes(), generator);
    return {drawn.narrow(1, 0, sequence_length()).contiguous(),
            drawn.narrow(1, 1, sequence_length()).contiguous(), number};
  }
  at::Tensor inputs = at::empty(input_shape(options_.batch)).normal_(0, 1, generator);
  const auto format =
      inputs.dim() == 4 ? options_.format : at::MemoryFormat(at::MemoryFormat::Contiguous);
  inputs = inputs.to(options_.dtype).contiguous(format);
  if (options_.targets == Targets::real) {
    const at::Tensor targets = at::empty({options_.batch, classes()}).normal_(0, 1, generator);
    return {std::move(inputs), targets.to(master_dtype()), number};
  }
  const at::Tensor labels =
      at::empty({options_.batch}, at::TensorOptions(at::kLong)).random_(0, classes(), generator);
  return {std::move(inputs), make_targets(options_.loss, labels, classes(), master_dtype()),
          number};
}

Optimizer Workload::make_optimizer(std::vector<NamedTensor> parameters) const {
  return {std::move(parameters), options_.optimizer};
}

at::Tensor Workload::loss(const at::Tensor& output, const at::Tensor& targets,
                          double weight) const {
  const bool widens = output.scalar_type() != master_dtype();
  return models::loss(options_.loss, widens ? output.to(master_dtype()) : output, targets, weight);
}

at::Tensor Workload::correct(const at::Tensor& output, const at::Tensor& targets) const {
  return options_.targets == Targets::real ? at::Tensor() : correct_predictions(output, targets);
}

}  // namespace stratagem::models
