#include "bench/config/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "bench/config/options.h"
#include "models/registry/registry.h"
#include "strategies/runtime/content_hash.h"
#include "strategies/runtime/require_memory.h"

namespace stratagem::bench {
namespace {

using models::InputKind;

/// Returns the data set of a model for which the user names none.
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

/// Returns the row's image side, else the set's (at least the model's smallest), else the default.
std::int64_t image_size_of(const Config& row, const models::ModelEntry& model,
                           const datasets::DatasetEntry& set) {
  if (row.image_size != 0) return row.image_size;
  if (set.image_size == 0) return model.default_image_size;
  return std::max(set.image_size, model.smallest_image);
}

/// Refuses a set whose drawn samples, with the order of an epoch, are more than the machine's
/// memory.
void require_memory_of_samples(const datasets::DatasetOptions& wanted, InputKind kind) {
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
  runtime::require_memory(bytes, fmt::format("--samples {}", wanted.samples));
}

constexpr const char* data_content = "data_content";

class RunningHash {
 public:
  template <class Element>
  void add(std::span<const Element> elements) {
    const auto bytes = std::as_bytes(elements);
    add(runtime::content_hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  void add(std::uint64_t number) {
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
    value_ = (value_ ^ number) * factor;
    value_ ^= value_ >> 29U;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

std::size_t bytes_of(const datasets::Sample& sample) {
  return sample.bytes.size() + sample.values.size_bytes() + sample.targets.size_bytes() +
         sizeof(sample.label);
}

/// Returns "own", "none" or the fraction.
nlohmann::ordered_json part_text(double part) {
  if (part == 0) return "none";
  return part < 0 ? nlohmann::ordered_json("own") : nlohmann::ordered_json(part);
}

/// Returns the options that must match. The schedule's steps are those in effect, also if another
/// option gives them.
nlohmann::ordered_json options_of_the_work(const Config& row,
                                           const training::TrainingOptions& options,
                                           std::int64_t steps) {
  nlohmann::ordered_json work;
  const nlohmann::json values = to_json(row);
  for (const Option& option : option_table()) {
    if (option.at_resume == strategies::AtResume::may_change) continue;
    work[option.name] = values.at(option.name);
  }
  if (options.evaluate_only) return work;  // it may evaluate on other data
  training::TrainingOptions::each_of_the_work(
      options, [&work](const char* name, const auto& value) { work[name] = value; });
  work["validation"] = part_text(options.validation);
  work["test"] = part_text(options.test);
  const auto rates = training::schedule_of(options, row.learning_rate, steps);
  work["schedule_steps"] = rates.kind == training::DecayKind::constant ? 0 : rates.steps;
  return work;
}

/// Returns the default of a name that a file lacks, or null if it is unknown: the first trainings
/// wrote fewer names, and of the others only mixed precision has a known default.
nlohmann::ordered_json unnamed(const nlohmann::ordered_json& was, const std::string& name) {
  const Config row;
  const training::TrainingOptions options;
  const nlohmann::ordered_json usual = options_of_the_work(row, options, 0);
  const bool is_of_the_first = !was.contains("learning_rate");
  if (is_of_the_first && name != "mixed_precision") return nullptr;
  return usual.value(name, nlohmann::ordered_json());
}

}  // namespace

const datasets::DatasetEntry& dataset_of(const Config& row,
                                         const training::TrainingOptions& options) {
  const models::ModelEntry& model = models::find_model(row.model);
  const std::string name = name_of(model, options);
  const datasets::DatasetEntry& set = datasets::entry_of(name);
  const datasets::SampleKind wanted = kind_for(model.input_kind);
  if (set.gives(wanted)) return set;
  throw std::invalid_argument(fmt::format("--data {}: {} trains on {}; choices: {}", name,
                                          model.name, plural_of(model.input_kind),
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
  wanted.sequence = row.sequence_length == 0 ? model.usual_sequence() : row.sequence_length;
  wanted.token_dtype = options.token_dtype;
  wanted.seed = static_cast<std::uint64_t>(row.seed);
  wanted.validation = options.validation;
  wanted.test = options.test;
  if (set.drawn) require_memory_of_samples(wanted, model.input_kind);
  return datasets::make_datasets(wanted, characters);
}

std::uint64_t content_hash_of(const datasets::Dataset& data) {
  constexpr std::int64_t most_bytes = std::int64_t{64} << 20;
  RunningHash hash;
  hash.add(static_cast<std::uint64_t>(data.size()));
  const auto each = static_cast<std::int64_t>(bytes_of(data.sample(0)));
  const std::int64_t count = std::clamp<std::int64_t>(most_bytes / each, 1, data.size());
  for (std::int64_t number = 0; number < count; ++number) {
    const auto share = static_cast<double>(number) / static_cast<double>(count);
    const auto index = count == data.size()
                           ? number
                           : static_cast<std::int64_t>(share * static_cast<double>(data.size()));
    const datasets::Sample sample = data.sample(index);
    hash.add(sample.bytes);
    hash.add(sample.values);
    hash.add(static_cast<std::uint64_t>(sample.label));
    hash.add(sample.targets);
  }
  return hash.value();
}

nlohmann::ordered_json work_of(const Config& row, const training::TrainingOptions& options,
                               const datasets::Dataset& data, std::int64_t steps) {
  nlohmann::ordered_json work = options_of_the_work(row, options, steps);
  if (!options.evaluate_only) {
    work[data_content] = fmt::format("{:016x}", content_hash_of(data));
  }
  return work;
}

void require_same_work(const std::string& path, const std::string& then,
                       const nlohmann::ordered_json& now) {
  const auto was = nlohmann::ordered_json::parse(then, nullptr, /*allow_exceptions=*/false);
  if (!was.is_object())
    throw std::invalid_argument(path + ": does not record the options of its training");
  for (const auto& [name, value] : now.items()) {
    const auto found = was.find(name);
    const nlohmann::ordered_json before = found == was.end() ? unnamed(was, name) : *found;
    if (before == value || before.is_null()) continue;
    if (name == data_content) {
      throw std::invalid_argument(
          path +
          ": belongs to a training on other data; --data, --samples and --targets must not change");
    }
    throw std::invalid_argument(
        fmt::format("{}: belongs to a training with {} {}, this one has {}; {} must not change",
                    path, name, before.dump(), value.dump(), kebab_flag(name)));
  }
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
