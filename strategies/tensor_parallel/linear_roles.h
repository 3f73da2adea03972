// A rank's part of each linear layer outside transformer blocks, decided once from the whole model:
// a stage may hold a single layer.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "models/model.h"

namespace stratagem::tensor_parallel {

enum class LinearRole {
  whole,            // all of it: the number of ranks does not divide its outputs
  column,           // some outputs, which are the next linear layer's inputs
  row,              // some inputs
  gathered_column,  // some outputs, which are gathered
  head,             // some logits of a language model, from which the loss is computed
};

/// The roles by the layer's name.
using LinearRoles = std::map<std::string, LinearRole>;

/// The first of two linear layers with element-wise functions between them is column parallel, and
/// the second is row parallel. A single one gathers its outputs, or stays whole if the number of
/// ranks does not divide them. No pair crosses one of `boundaries`, the layers before which
/// activations go to another device. `predicts_tokens`: the model is a language model, whose last
/// layer is its head.
LinearRoles linear_roles(const models::LayerList& layers,
                         const std::vector<std::size_t>& boundaries, int ranks,
                         bool predicts_tokens);

}  // namespace stratagem::tensor_parallel
