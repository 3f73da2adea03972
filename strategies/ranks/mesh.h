// Mesh: the job's devices arranged on named dimensions.
//
// Positions count with the last dimension fastest, so with "data=2/pipeline=2" position 1 is data
// 0, pipeline 1, and with "pipeline=2/data=2" it is pipeline 0, data 1. A collective runs over a
// group: the positions that differ in some dimensions only. In the usual order tensor parallelism,
// which communicates most, is last, so that its groups are neighbours; data parallelism is first
// (the order of Megatron-LM, arXiv 2104.04473, section 4).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem::ranks {

struct MeshDimension {
  std::string name;
  int size = 1;

  bool operator==(const MeshDimension&) const = default;
};

class Mesh {
 public:
  /// Takes data, pipeline, context and tensor in any order, which is that of the positions; a
  /// missing dimension has size 1. Throws std::invalid_argument for another name, a repeated name,
  /// or a size below 1.
  explicit Mesh(const std::vector<MeshDimension>& dimensions = {});

  /// Returns the number of positions.
  int size() const;
  /// Throws std::invalid_argument for an unknown name.
  int size(std::string_view dimension) const;
  const std::vector<MeshDimension>& dimensions() const { return dimensions_; }

  /// Returns the coordinate of `position` along the dimension.
  int coordinate(int position, std::string_view dimension) const;
  /// Returns the positions that differ from `position` only in these dimensions, with itself,
  /// ascending.
  std::vector<int> group(int position, std::initializer_list<std::string_view> dimensions) const;

  /// Returns "data=2/pipeline=2/tensor=1": always these three, and context if it is larger than 1.
  std::string to_string() const;
  /// Returns "data=2/pipeline=2": without dimensions of size 1; "data=1" for one device.
  std::string shortest() const;

 private:
  std::size_t index_of(std::string_view dimension) const;
  /// Returns the distance between two neighbours along the dimension.
  int stride(std::size_t dimension) const;
  void require_position(int position) const;

  std::vector<MeshDimension> dimensions_;
};

/// Parses "data=2/pipeline=2". Throws std::invalid_argument, in one line, for anything else.
Mesh parse_mesh(std::string_view text);

}  // namespace stratagem::ranks
