// A reader of the pickles that torch.save writes, which builds values and runs nothing. It takes
// the opcodes and the names that torch.load takes with weights_only, and refuses every other one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "training/checkpoint/pickled_value.h"

namespace stratagem::checkpoint {

/// The most bytes of memory that reading a pickle may take.
inline constexpr std::size_t most_pickle_memory = std::size_t{256} << 20U;

/// Throws std::invalid_argument, in one line with the byte's position: an opcode or a name that is
/// not allowed, an end too early, values nested too deeply or inside themselves, values above
/// `most_pickle_memory`, a tensor that reaches beyond its storage.
Value read_pickle(std::span<const std::uint8_t> bytes);

/// Reads the pickle at the start of `bytes` and moves `bytes` behind it. Throws like read_pickle().
Value take_pickle(std::span<const std::uint8_t>& bytes);

}  // namespace stratagem::checkpoint
