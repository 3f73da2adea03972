// Random noise without anything to learn, for examples and for timing.
#include "models/datasets/random_sets.h"
#include "models/datasets/registry.h"

namespace stratagem::datasets {
namespace {

Datasets random_sets(const DatasetOptions& options) {
  return drawn_sets(options, [&](std::int64_t first, std::int64_t count) {
    return options.image_size > 0 ? random_images(options, first, count)
                                  : random_numbers(options, first, count);
  });
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "random",
    .summary = "uniform noise of the model's sizes: vectors, or images of --image-size",
    .kinds = {stratagem::datasets::SampleKind::vector, stratagem::datasets::SampleKind::image},
    .drawn = true,
    .make = stratagem::datasets::random_sets});
