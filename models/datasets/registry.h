// The data sets that can be asked for by name. Each registers itself in its own file, of this tree
// or of a plug-in:
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
  std::string argument = {};  // what must follow the name and a colon: "FOLDER"; empty: nothing may
  std::string summary = {};
  std::vector<SampleKind> kinds = {};  // the samples that it can give
  std::int64_t image_size = 0;         // pixels a side of its images; 0: it gives any size
  bool drawn = false;                  // it has as many samples as DatasetOptions::samples
  /// Gives the training set, and the parts of its own that the options ask for. Throws
  /// std::invalid_argument, in one line that begins with "--data".
  std::function<Datasets(const DatasetOptions&)> make = {};

  bool gives(SampleKind kind) const { return std::ranges::find(kinds, kind) != kinds.end(); }
  /// Returns the value of --data for this set: "mnist:FOLDER".
  std::string usage() const { return argument.empty() ? name : name + ":" + argument; }

  static models::Registry<DatasetEntry>& registry();
};

/// Throws std::invalid_argument with the choices and the nearest name.
const DatasetEntry& find_dataset(std::string_view name);

/// Sorted.
std::vector<std::string> dataset_names();

/// Lists the values of --data: "cifar10:FOLDER, ..., text"; with a kind, only sets that give it.
std::string dataset_usages();
std::string dataset_usages(SampleKind kind);

/// The entry of "mnist:FOLDER". Throws std::invalid_argument for an unknown name, and where what
/// follows the colon is missing or too much.
const DatasetEntry& entry_of(const std::string& name_and_path);

/// Returns the parts of a drawn set, for its `make`: samples [0, n) to train on, and as many more
/// for each requested part. `draw(first, count)` makes a set.
Datasets drawn_sets(const DatasetOptions& options,
                    const std::function<DatasetPointer(std::int64_t, std::int64_t)>& draw);

}  // namespace stratagem::datasets
