// What the oracle of a mixed workload trains: float32 parameters beside those of fewer bits that
// the model computes with.
#pragma once

#include <vector>

#include "models/model.h"

namespace stratagem::bench {

class MasterParameters {
 public:
  /// From now on the model computes in `dtype`.
  MasterParameters(at::ScalarType dtype, const models::Model& model);

  const std::vector<models::NamedTensor>& parameters() const { return masters_; }

  /// The model's parameters are the masters, rounded; these have gradients of zero.
  void begin_step();
  /// Those of a micro-batch, added to the masters' in their format.
  void add_gradients();

 private:
  std::vector<models::NamedTensor> of_model_;
  std::vector<models::NamedTensor> masters_;
};

}  // namespace stratagem::bench
