// The data sets by name. Each registers itself in its own file, of this tree or of a plug-in:
//   STRATAGEM_REGISTER(DatasetEntry{...});
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/datasets/dataset.h"
#include "models/registry/named_entries.h"

namespace stratagem::datasets {

struct DatasetEntry {
  std::string name = {};
  std::string argument = {};  // the text after the name and a colon: "FOLDER"; empty: no colon
  std::string summary = {};
  std::vector<SampleKind> kinds = {};  // the kinds of samples that it can give
  std::int64_t image_size = 0;         // pixels a side of its images; 0: any size
  bool drawn = false;                  // its size is DatasetOptions::samples
  /// Returns the training set and its own parts that the options request. Throws
  /// std::invalid_argument, in one line that begins with "--data".
  std::function<Datasets(const DatasetOptions&)> make = {};

  bool gives(SampleKind kind) const { return std::ranges::find(kinds, kind) != kinds.end(); }
  /// Returns the value of --data for this set: "mnist:FOLDER".
  std::string usage() const { return argument.empty() ? name : name + ":" + argument; }

  static models::Registry<DatasetEntry>& registry();
};

/// Throws std::invalid_argument with the choices and the nearest name.
const DatasetEntry& find_dataset(std::string_view name);

/// Returns the sorted names.
std::vector<std::string> dataset_names();

/// Lists the values of --data: "cifar10:FOLDER, ..., text"; with a kind, only sets that give it.
std::string dataset_usages();
std::string dataset_usages(SampleKind kind);

/// Returns the entry of "mnist:FOLDER". Throws std::invalid_argument for an unknown name, and if
/// the path after the colon is missing or must not be there.
const DatasetEntry& entry_of(const std::string& name_and_path);

/// Returns the parts of a drawn set, for its `make`: samples [0, n) to train on, and n more for
/// each requested part. `draw(first, count)` makes a set.
Datasets drawn_sets(const DatasetOptions& options,
                    const std::function<DatasetPointer(std::int64_t, std::int64_t)>& draw);

}  // namespace stratagem::datasets
