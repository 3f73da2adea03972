// Mesh: the job's devices arranged on named dimensions.
//
// Positions count with the last dimension fastest, so with "data=2/pipeline=2" position 1 is data
// 0, pipeline 1. A group is what a collective runs over: the positions that differ in one dimension
// only. Tensor parallelism talks most and stands last, so that its groups are neighbours; data
// parallelism talks least and stands first (the order of Megatron-LM, arXiv 2104.04473, section 4).
#pragma once

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
  /// Of data, pipeline and tensor, in this order; a dimension left out has size 1, and one of size
  /// 1 may stand anywhere. Throws std::invalid_argument for another order or name, a name twice, or
  /// a size below 1.
  explicit Mesh(const std::vector<MeshDimension>& dimensions = {});

  /// Positions in all.
  int size() const;
  /// Throws std::invalid_argument for an unknown name.
  int size(std::string_view dimension) const;
  const std::vector<MeshDimension>& dimensions() const { return dimensions_; }

  /// Where `position` lies along the dimension.
  int coordinate(int position, std::string_view dimension) const;
  /// The positions that differ from `position` in this dimension only, itself among them,
  /// ascending.
  std::vector<int> group(int position, std::string_view dimension) const;

  /// "data=2/pipeline=2/tensor=1": always all three.
  std::string to_string() const;
  /// "data=2/pipeline=2": without dimensions of size 1; of one device "data=1".
  std::string shortest() const;

 private:
  std::size_t index_of(std::string_view dimension) const;
  /// How far two neighbours along the dimension lie apart.
  int stride(std::size_t dimension) const;
  void require_position(int position) const;

  std::vector<MeshDimension> dimensions_;
};

/// A group of ranks cut into `parts` of neighbours, as many in each: the part that `own` is in, and
/// the ranks that stand in the parts where `own` stands in its.
std::vector<int> neighbours(const std::vector<int>& group, int own, int parts);
std::vector<int> counterparts(const std::vector<int>& group, int own, int parts);

/// "data=2/pipeline=2". Throws std::invalid_argument, one line, for anything else.
Mesh parse_mesh(std::string_view text);

}  // namespace stratagem::ranks
