// A strategy's state by the names of the single-device model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stratagem::strategies {

/// Parameters, buffers, "optimizer.<...>" and "gradient.<parameter>" entries on the CPU, under the
/// names of the single-device model; with a dynamic loss scale also its scaler's
/// (models::LossScale).
using StateDictionary = std::map<std::string, at::Tensor>;

/// A rank's elements of one entry of that state. An entry may be cut twice: into the slices of
/// tensor parallelism, and each slice into the runs of sharded state.
struct StatePiece {
  std::string name = {};   // the entry's name
  at::Tensor values = {};  // [n], contiguous, in the rank's own memory
  at::Tensor slice = {};   // on the meta device: a view of the whole, contiguous entry
  std::int64_t start = 0;  // the values are elements start, start + 1, ... of the slice in
                           // row-major order
  std::vector<std::int64_t> sizes = {};  // the sizes of the whole entry
};
using StatePieces = std::vector<StatePiece>;

}  // namespace stratagem::strategies
