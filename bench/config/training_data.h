// The data of a training, from its row and options, and its work: what stays the same when it
// continues from a checkpoint.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "bench/config/config.h"
#include "models/datasets/dataset.h"
#include "models/datasets/registry.h"
#include "training/options.h"

namespace stratagem::bench {

/// Returns the requested data set, with `auto` resolved by the model's inputs. Throws
/// std::invalid_argument, in one line, for an unknown set and one whose samples the model does not
/// take.
const datasets::DatasetEntry& dataset_of(const Config& row,
                                         const training::TrainingOptions& options);

/// Throws std::invalid_argument, in one line, like dataset_of() and for data that cannot be read.
/// Images are of the row's size; if that is 0 they keep the set's own, or the smallest that the
/// model takes. `characters` is the text of `--data text`; it outlives the sets.
datasets::Datasets training_data(const Config& row, const training::TrainingOptions& options,
                                 std::string_view characters);

/// Gives the row the sizes of its data that the user has not given: the side of images, the numbers
/// of inputs and outputs of a model that takes sizes, and the number of classes of images.
void fit_to_data(Config& row, const datasets::SampleFormat& format);

/// Returns a hash of the set's size and of its samples with their targets: of all if they are at
/// most 64 MiB, else of samples spread evenly over the set.
std::uint64_t content_hash_of(const datasets::Dataset& data);

/// Returns the options that must match at --resume (Option::at_resume, each_of_the_work) and the
/// content of the training set. `steps`: of the whole training, for its learning rates.
nlohmann::ordered_json work_of(const Config& row, const training::TrainingOptions& options,
                               const datasets::Dataset& data, std::int64_t steps);

/// Throws std::invalid_argument, in one line that begins with `path`, with the first part of the
/// work that differs from the work at that checkpoint.
void require_same_work(const std::string& path, const std::string& then,
                       const nlohmann::ordered_json& now);

}  // namespace stratagem::bench
