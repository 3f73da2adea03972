// The sets that make_datasets() knows, one file each.
#pragma once

#include <filesystem>

#include "models/datasets/dataset.h"

namespace stratagem::datasets {

/// A training set and a test set of their own.
struct OwnSplit {
  DatasetPointer training;
  DatasetPointer test;
};

/// MNIST as LeCun, Cortes and Burges published it: train-images-idx3-ubyte and the three beside it,
/// in IDX (big endian; magic 0x803 for images, 0x801 for labels). 28x28, one channel, 10 classes.
OwnSplit mnist(const std::filesystem::path& folder);

/// CIFAR-10 (Krizhevsky 2009), the binary version: data_batch_1.bin to data_batch_5.bin and
/// test_batch.bin, each 10,000 records of a label and 3x32x32 pixels.
OwnSplit cifar10(const std::filesystem::path& folder);

/// Drawn figures in noise, 3x32x32, 10 classes. `first` numbers the samples, so that sets of
/// different numbers have none in common.
DatasetPointer shapes(std::int64_t first, std::int64_t count, std::uint64_t seed);

/// Uniform in [0, 1): features, and classes or real targets; likewise numbered.
DatasetPointer random_numbers(const DatasetOptions& options, std::int64_t first,
                              std::int64_t count);

/// Images of uniform noise and classes; likewise numbered.
DatasetPointer random_images(const DatasetOptions& options, std::int64_t first, std::int64_t count);

/// Windows of a text, side by side: each begins with the last token of the one before.
DatasetPointer text(std::string_view characters, std::int64_t sequence);

}  // namespace stratagem::datasets
