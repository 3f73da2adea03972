#include "bench/config/training_data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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

datasets::SampleKind kind_for(InputKind kind) {
  switch (kind) {
    case InputKind::image:
      return datasets::SampleKind::image;
    case InputKind::tokens:
      return datasets::SampleKind::tokens;
    case InputKind::vector:
      break;
  }
  return datasets::SampleKind::vector;
}

const char* plural_of(InputKind kind) {
  switch (kind) {
    case InputKind::image:
      return "images";
    case InputKind::tokens:
      return "tokens";
    case InputKind::vector:
      break;
  }
  return "vectors";
}

/// Returns the value of --data, or the usual data set of the model's inputs.
std::string name_of(const models::ModelEntry& model, const training::TrainingOptions& options) {
  return options.data == "auto" ? usual_data(model.input_kind) : options.data;
}

/// The side of the images: the row's, the set's own as far as the model takes it, or the model's.
std::int64_t image_size_of(const Config& row, const models::ModelEntry& model,
                           const datasets::DatasetEntry& set) {
  if (row.image_size != 0) return row.image_size;
  if (set.image_size == 0) return model.default_image_size;
  return std::max(set.image_size, model.smallest_image);
}

/// Refuses a set whose drawn samples, with the order of an epoch, are more than the machine's
/// memory.
void require_memory(const datasets::DatasetOptions& wanted, InputKind kind) {
  const auto pixels =
      static_cast<double>(wanted.image_size) * static_cast<double>(wanted.image_size);
  double sample = 24;  // its places in the order and in the batches, and its label
  double shared = 0;
  if (wanted.name == "shapes") sample += 3 * 32 * 32;
  if (wanted.name == "random" && kind == InputKind::image) shared = 3 * pixels;
  if (wanted.name == "random" && kind == InputKind::vector) {
    const std::int64_t numbers = wanted.features + (wanted.real_targets ? wanted.outputs : 0);
    sample += static_cast<double>(sizeof(float)) * static_cast<double>(numbers);
  }
  const int sets = 1 + (wanted.validation < 0 ? 1 : 0) + (wanted.test < 0 ? 1 : 0);
  const double bytes = sets * static_cast<double>(wanted.samples) * sample + shared;
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (bytes < memory) return;
  constexpr double gib = 1024.0 * 1024 * 1024;
  throw std::invalid_argument(fmt::format(
      "--samples {}: take {:.3g} GiB of memory, {:.3g} GiB are there; fewer, or smaller ones",
      wanted.samples, bytes / gib, memory / gib));
}

}  // namespace

const datasets::DatasetEntry& dataset_of(const Config& row,
                                         const training::TrainingOptions& options) {
  const models::ModelEntry& model = models::find_model(row.model);
  const std::string name = name_of(model, options);
  const datasets::DatasetEntry& set = datasets::entry_of(name);
  const datasets::SampleKind wanted = kind_for(model.input_kind);
  if (set.gives(wanted)) return set;
  throw std::invalid_argument(fmt::format("--data {}: {} trains on {}: {}", name, model.name,
                                          plural_of(model.input_kind),
                                          datasets::dataset_usages(wanted)));
}

datasets::Datasets training_data(const Config& row, const training::TrainingOptions& options,
                                 std::string_view characters) {
  const models::ModelEntry& model = models::find_model(row.model);
  const datasets::DatasetEntry& set = dataset_of(row, options);
  datasets::DatasetOptions wanted;
  wanted.name = name_of(model, options);
  wanted.samples = options.samples;
  wanted.features = row.features == 0 ? model.features : row.features;
  wanted.outputs = row.outputs == 0 ? model.classes : row.outputs;
  if (model.input_kind == InputKind::image) {
    wanted.image_size = image_size_of(row, model, set);
  }
  wanted.real_targets = row.targets == "real";
  wanted.sequence = row.sequence_length == 0 ? model.longest_sequence : row.sequence_length;
  wanted.token_dtype = options.token_dtype;
  wanted.seed = static_cast<std::uint64_t>(row.seed);
  wanted.validation = options.validation;
  wanted.test = options.test;
  if (set.drawn) require_memory(wanted, model.input_kind);
  return datasets::make_datasets(wanted, characters);
}

void fit_to_data(Config& row, const datasets::SampleFormat& format) {
  const bool has_images = format.kind == datasets::SampleKind::image;
  const bool takes_sizes = models::find_model(row.model).takes_sizes;
  if (has_images) row.image_size = format.height;
  if (takes_sizes && !has_images && row.features == 0) row.features = format.features;
  if ((takes_sizes || has_images) && row.outputs == 0) {
    row.outputs = format.classes > 0 ? format.classes : format.outputs;
  }
}

}  // namespace stratagem::bench
