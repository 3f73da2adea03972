// The pieces of a state that is spread over ranks, and what one rank needs to know of another's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "strategies/state.h"

namespace stratagem::distributed {

/// A tensor as one piece, the whole entry. A dense tensor's values are its own memory, in the order
/// in which they lie there.
strategies::StatePiece piece_of(std::string name, const at::Tensor& tensor);

/// `values` [n] as elements `start`, `start + 1`, ... of an entry with the sizes and strides of
/// `like`, in the order in which a dense tensor of these strides lies in memory.
strategies::StatePiece run_of(std::string name, const at::Tensor& like, at::Tensor values,
                              std::int64_t start);

/// The pieces without their values, which are on the meta device instead; and back.
std::string described(const strategies::StatePieces& pieces);
strategies::StatePieces from_description(const std::string& text);

}  // namespace stratagem::distributed
