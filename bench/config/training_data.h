// The data of a training, from what its row and its options ask for, and its work: what stays the
// same when it goes on from a checkpoint.
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

/// The data set that is asked for, `auto` resolved by the model's inputs. Throws
/// std::invalid_argument, in one line, for an unknown set and one whose samples the model does not
/// take.
const datasets::DatasetEntry& dataset_of(const Config& row,
                                         const training::TrainingOptions& options);

/// Throws std::invalid_argument, in one line, as dataset_of() does and for data that cannot be
/// read. Images are of the row's size; where that is 0 they keep the set's own, or the smallest
/// that the model takes. `characters`: what `--data text` trains on; it outlives the sets.
datasets::Datasets training_data(const Config& row, const training::TrainingOptions& options,
                                 std::string_view characters);

/// Gives the row the sizes of its data that nobody has given: the side of images, the numbers of
/// inputs and outputs of a model that takes sizes, and the number of classes of images.
void fit_to_data(Config& row, const datasets::SampleFormat& format);

/// A hash of the set's size and of its samples with their targets: of all where they are at most 64
/// MiB, else of so many that lie evenly among them.
std::uint64_t content_hash_of(const datasets::Dataset& data);

/// The options that must match at --resume (Option::at_resume, TrainingOptions::each_of_the_work)
/// and the content of the training set. `steps`: of the whole training, for its learning rates.
nlohmann::ordered_json work_of(const Config& row, const training::TrainingOptions& options,
                               const datasets::Dataset& data, std::int64_t steps);

/// Throws std::invalid_argument, in one line that begins with `path`, with the first part of the
/// work that was another one when that checkpoint was written.
void require_same_work(const std::string& path, const std::string& then,
                       const nlohmann::ordered_json& now);

}  // namespace stratagem::bench
