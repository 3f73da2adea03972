#include "strategies/stages/flat_layout.h"

#include <algorithm>

namespace stratagem::stages {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

FlatLayout::FlatLayout(const std::vector<std::int64_t>& sizes, std::int64_t element_bytes,
                       int shards)
    : shards_(shards) {
  const std::int64_t piece = std::max<std::int64_t>(1, alignment / element_bytes);
  std::int64_t end = 0;
  for (const std::int64_t size : sizes) {
    parameters_.push_back({rounded_up(end, piece), size});
    end = parameters_.back().start + size;
  }
  shard_size_ = rounded_up(end, piece * shards_) / shards_;
}

std::vector<Range> FlatLayout::gaps() const {
  std::vector<Range> found;
  std::int64_t end = 0;
  const auto note = [&](std::int64_t next) {
    if (next > end) found.push_back({end, next - end});
  };
  for (const Range& parameter : parameters_) {
    note(parameter.start);
    end = parameter.start + parameter.count;
  }
  note(size());
  return found;
}

Range FlatLayout::part_of(std::size_t parameter, int shard) const {
  const Range& whole = parameters_.at(parameter);
  const std::int64_t begin = std::max(whole.start, shard * shard_size_);
  const std::int64_t end = std::min(whole.start + whole.count, (shard + 1) * shard_size_);
  return end <= begin ? Range{} : Range{begin - shard * shard_size_, end - begin};
}

}  // namespace stratagem::stages
