// FlatLayout: the places of a group's parameters in one buffer that is sharded over ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace stratagem::stages {

/// A run of elements.
struct Range {
  std::int64_t start = 0;
  std::int64_t count = 0;

  bool operator==(const Range&) const = default;
};

/// The parameters are consecutive and each starts at a multiple of 64 bytes, so that kernels find
/// them as aligned as separate tensors. Padding gives each shard the same number of 64-byte pieces.
class FlatLayout {
 public:
  static constexpr std::int64_t alignment = 64;  // bytes

  /// `sizes` in elements, of `element_bytes` each; `shards` is 1 or more.
  FlatLayout(const std::vector<std::int64_t>& sizes, std::int64_t element_bytes, int shards);

  /// Returns [parameter]: its place.
  const std::vector<Range>& parameters() const { return parameters_; }
  std::int64_t size() const { return shard_size_ * shards_; }
  std::int64_t shard_size() const { return shard_size_; }
  Range shard(int index) const { return {index * shard_size_, shard_size_}; }

  /// Returns the runs that belong to no parameter.
  std::vector<Range> gaps() const;

  /// Returns the part of a parameter in a shard, counted from the shard's start, or a count of 0.
  Range part_of(std::size_t parameter, int shard) const;

 private:
  std::vector<Range> parameters_;
  int shards_;
  std::int64_t shard_size_ = 0;
};

}  // namespace stratagem::stages
