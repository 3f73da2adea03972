// A reader of the pickles that torch.save writes (protocol 2), which builds values and runs
// nothing: what torch.load reads with weights_only, without its classes. It takes the opcodes and
// the names of the lists in pickle_reader.cpp and refuses every other one.
#pragma once

#include <cstdint>
#include <span>

#include "training/checkpoint/pickled_value.h"

namespace stratagem::checkpoint {

/// Throws std::invalid_argument, in one line with the byte: an opcode or a name that is not
/// allowed, an end too early, values nested or repeated beyond any checkpoint's, a list or
/// dictionary that stands in two places, a tensor that reaches beyond its storage.
Value read_pickle(std::span<const std::uint8_t> bytes);

}  // namespace stratagem::checkpoint
