// The formats of gradient sums if layers compute in fewer bits than the trained parameters, the
// masters, have.
#pragma once

#include <cstdint>

#include "strategies/schedules/sharding.h"

namespace stratagem::stages {

struct GradientSums {
  schedules::Sharded sharded = "optimizer";
  bool mixed = false;      // the masters have more bits than the layers
  bool in_master = true;   // ranks add up in the masters' format (--reduce-dtype float32)
  bool partial = false;    // ranks of a tensor-parallel group sum some of them first
  bool exchanged = false;  // a reduce-scatter is an exchange, which sends in the layers' format
                           // and sums in the masters'

  bool is_sharded() const { return sharded != "none"; }
  /// Returns whether whole gradients stay from one micro-batch to the next.
  bool keeps_gradients() const { return sharded < "gradients"; }

  /// Returns whether the whole gradients of a step of `micro_batches` are kept, and sent, in the
  /// masters' format: if several of them are summed before they travel, or if the library sums its
  /// inputs. An exchange of one micro-batch's gradients sends half the bytes for an equal sum.
  bool master_is_scattered(std::int64_t micro_batches) const {
    if (!mixed || !in_master) return false;
    return (keeps_gradients() && micro_batches > 1) || partial || !exchanged;
  }
  /// Returns whether a sum in place, like ZeRO-1's, is this rank's part of the whole.
  bool sums_in_place(std::int64_t micro_batches) const {
    return keeps_gradients() && (!mixed || master_is_scattered(micro_batches));
  }
};

}  // namespace stratagem::stages
