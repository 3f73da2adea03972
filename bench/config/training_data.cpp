#include "bench/config/training_data.h"

#include <fmt/format.h>

#include <stdexcept>

#include "models/registry/registry.h"

namespace stratagem::bench {
namespace {

using models::InputKind;

/// What a model is trained on when nobody says.
const char* usual_data(InputKind kind) {
  switch (kind) {
    case InputKind::image:
      return "shapes";
    case InputKind::tokens:
      return "text";
    case InputKind::vector:
      break;
  }
  return "random";
}

const char* words_for(InputKind kind) {
  switch (kind) {
    case InputKind::image:
      return "images: random, shapes, mnist:FOLDER or cifar10:FOLDER";
    case InputKind::tokens:
      return "tokens: text";
    case InputKind::vector:
      break;
  }
  return "vectors: random";
}

bool takes(InputKind kind, datasets::SampleKind samples) {
  return (kind == InputKind::image && samples == datasets::SampleKind::image) ||
         (kind == InputKind::vector && samples == datasets::SampleKind::vector) ||
         (kind == InputKind::tokens && samples == datasets::SampleKind::tokens);
}

}  // namespace

datasets::Datasets training_data(const Config& row, const training::TrainingOptions& options,
                                 std::string_view characters) {
  const models::ModelEntry& model = models::find_model(row.model);
  datasets::DatasetOptions wanted;
  wanted.name = options.data == "auto" ? usual_data(model.input_kind) : options.data;
  wanted.samples = options.samples;
  wanted.features = row.features == 0 ? model.features : row.features;
  wanted.outputs = row.outputs == 0 ? model.classes : row.outputs;
  if (model.input_kind == InputKind::image) {
    wanted.image_size = row.image_size == 0 ? model.default_image_size : row.image_size;
  }
  wanted.real_targets = row.targets == "real";
  wanted.sequence = row.sequence_length == 0 ? model.longest_sequence : row.sequence_length;
  wanted.seed = static_cast<std::uint64_t>(row.seed);
  wanted.validation = options.validation;
  wanted.test = options.test;
  datasets::Datasets sets = datasets::make_datasets(wanted, characters);
  if (!takes(model.input_kind, sets.training->format().kind)) {
    throw std::invalid_argument(fmt::format("--data {}: {} trains on {}", wanted.name, model.name,
                                            words_for(model.input_kind)));
  }
  return sets;
}

void fit_to_data(Config& row, const datasets::SampleFormat& format) {
  if (format.kind != datasets::SampleKind::image) return;
  row.image_size = format.height;
  row.outputs = format.classes;
}

}  // namespace stratagem::bench
