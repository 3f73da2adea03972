// MasterParameters: the float32 parameters that the oracle of a mixed workload trains, beside those
// of fewer bits that the model computes with.
#pragma once

#include <vector>

#include "models/model.h"

namespace stratagem::bench {

class MasterParameters {
 public:
  /// Makes the model compute in `dtype`.
  MasterParameters(at::ScalarType dtype, const models::Model& model);

  const std::vector<models::NamedTensor>& parameters() const { return masters_; }

  /// Rounds the masters into the model's parameters, and zeroes the masters' gradients.
  void begin_step();
  /// Adds a micro-batch's gradients to the masters', in their format.
  void add_gradients();

 private:
  std::vector<models::NamedTensor> of_model_;
  std::vector<models::NamedTensor> masters_;
};

}  // namespace stratagem::bench
