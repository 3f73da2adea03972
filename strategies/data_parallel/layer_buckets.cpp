#include "strategies/data_parallel/layer_buckets.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "strategies/stages/layer_groups.h"
#include "strategies/stages/partition.h"

namespace stratagem::data_parallel {

std::vector<int> owners_of(const std::vector<std::int64_t>& bytes, int devices) {
  std::vector<std::size_t> by_size(bytes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, std::ranges::greater(),
                           [&](std::size_t bucket) { return bytes[bucket]; });
  std::vector<std::int64_t> owned(static_cast<std::size_t>(devices), 0);
  std::vector<int> owners(bytes.size(), 0);
  for (const std::size_t bucket : by_size) {
    const auto least = std::ranges::min_element(owned);
    *least += bytes[bucket];
    owners[bucket] = static_cast<int>(least - owned.begin());
  }
  return owners;
}

Segments segments_of(models::LayerSpan layers, const strategies::StrategyOptions& options,
                     int devices, double width) {
  Segments segments;
  if (strategies::exchanges_buckets(options)) {
    segments.boundaries =
        stages::bucket_boundaries(layers, strategies::bucket_bytes(options) * width * width);
  } else if (options.recompute == "full") {
    segments.boundaries = stages::group_boundaries(layers, /*group_bytes=*/0);
  }
  segments.kept = stages::kept_groups(layers, segments.boundaries, options);
  segments.owners.assign(segments.boundaries.size() + 1, 0);
  if (options.update != "everywhere") return segments;
  std::vector<std::int64_t> bytes;
  std::size_t begin = 0;
  for (std::size_t index = 0; index <= segments.boundaries.size(); ++index) {
    const std::size_t end =
        index < segments.boundaries.size() ? segments.boundaries[index] : layers.size();
    bytes.push_back(bytes_of(models::parameters(layers.subspan(begin, end - begin))));
    begin = end;
  }
  segments.owners = owners_of(bytes, devices);
  return segments;
}

std::int64_t bytes_of(std::span<const models::NamedTensor> tensors) {
  std::int64_t bytes = 0;
  for (const auto& entry : tensors) bytes += static_cast<std::int64_t>(entry.tensor.nbytes());
  return bytes;
}

}  // namespace stratagem::data_parallel
