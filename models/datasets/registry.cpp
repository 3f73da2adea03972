#include "models/datasets/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <utility>

namespace stratagem::datasets {
namespace {

template <class Wanted>
std::string usages_of(Wanted wanted) {
  std::vector<std::string> usages;
  for (const std::string& name : dataset_names()) {
    if (wanted(find_dataset(name))) usages.push_back(find_dataset(name).usage());
  }
  return fmt::format("{}", fmt::join(usages, ", "));
}

}  // namespace

// The registry is inside a function, because other files' entries arrive at static initialisation.
models::Registry<DatasetEntry>& DatasetEntry::registry() {
  static models::Registry<DatasetEntry> instance("data set");
  return instance;
}

const DatasetEntry& find_dataset(std::string_view name) {
  return DatasetEntry::registry().find(name);
}

std::vector<std::string> dataset_names() { return DatasetEntry::registry().names(); }

std::string dataset_usages() {
  return usages_of([](const DatasetEntry&) { return true; });
}

std::string dataset_usages(SampleKind kind) {
  return usages_of([kind](const DatasetEntry& entry) { return entry.gives(kind); });
}

const DatasetEntry& entry_of(const std::string& name_and_path) {
  const std::size_t colon = name_and_path.find(':');
  const std::string name = name_and_path.substr(0, colon);
  const std::vector<std::string> names = dataset_names();
  if (std::ranges::find(names, name) == names.end()) {
    throw std::invalid_argument(
        fmt::format("--data {}: {}", name_and_path, models::unknown_name("data set", name, names)));
  }
  const DatasetEntry& entry = find_dataset(name);
  const bool has_path = colon != std::string::npos && colon + 1 < name_and_path.size();
  if (has_path == entry.argument.empty()) {
    throw std::invalid_argument(
        fmt::format("--data {}: expected {}", name_and_path, entry.usage()));
  }
  return entry;
}

Datasets drawn_sets(const DatasetOptions& options,
                    const std::function<DatasetPointer(std::int64_t, std::int64_t)>& draw) {
  if (options.samples < 1) {
    throw std::invalid_argument(fmt::format("--samples {}: expected 1 or more", options.samples));
  }
  const std::int64_t count = options.samples;
  Datasets sets{.training = draw(0, count), .validation = nullptr, .test = nullptr};
  if (options.validation < 0) sets.validation = draw(count, count);
  if (options.test < 0) sets.test = draw(2 * count, count);
  return sets;
}

}  // namespace stratagem::datasets
