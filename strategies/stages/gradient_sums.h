// In which format gradients are added up where layers compute in fewer bits than the parameters
// that are trained, the masters, have.
#pragma once

#include <cstdint>

#include "strategies/schedules/sharding.h"

namespace stratagem::stages {

struct GradientSums {
  schedules::Sharded sharded = "optimizer";
  bool mixed = false;      // the masters have more bits than the layers
  bool in_master = true;   // ranks add up in the masters' format (--reduce-dtype float32)
  bool partial = false;    // ranks of a tensor-parallel group add up some of them first
  bool exchanged = false;  // a reduce-scatter is an exchange, which adds up in the masters' format
                           // what it sends in the layers'

  bool is_sharded() const { return sharded != "none"; }
  /// Whether whole gradients stay, from one micro-batch to the next.
  bool keeps_gradients() const { return sharded < "gradients"; }

  /// Whether the whole gradients of a step of so many micro-batches are kept, and sent, in the
  /// masters' format: where several of them are added up before they travel, and where the library
  /// adds up what it is given. An exchange of one micro-batch's sends half the bytes and sums
  /// alike.
  bool master_is_scattered(std::int64_t micro_batches) const {
    if (!mixed || !in_master) return false;
    return (keeps_gradients() && micro_batches > 1) || partial || !exchanged;
  }
  /// Whether one that is summed where it lies, as ZeRO-1's, is this rank's part of the whole.
  bool sums_in_place(std::int64_t micro_batches) const {
    return keeps_gradients() && (!mixed || master_is_scattered(micro_batches));
  }
};

}  // namespace stratagem::stages
