// The pieces of a state that is spread over ranks, and their description for other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "strategies/state.h"

namespace stratagem::distributed {

/// Returns a tensor as one piece, the whole entry. A dense tensor's values are its own memory, in
/// memory order.
strategies::StatePiece piece_of(std::string name, const at::Tensor& tensor);

/// Returns `values` [n] as elements `start`, `start + 1`, ... of an entry with the sizes and
/// strides of `like`, in the memory order of a dense tensor of these strides.
strategies::StatePiece run_of(std::string name, const at::Tensor& like, at::Tensor values,
                              std::int64_t start);

/// Convert pieces to text and back; the values, left out, are on the meta device instead.
std::string described(const strategies::StatePieces& pieces);
strategies::StatePieces from_description(const std::string& text);

}  // namespace stratagem::distributed
