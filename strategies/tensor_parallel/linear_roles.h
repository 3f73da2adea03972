// What a rank has of each linear layer outside of transformer blocks, decided once from the whole
// model: a stage may hold a single layer.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "models/model.h"

namespace stratagem::tensor_parallel {

enum class LinearRole {
  whole,            // all of it: the ranks do not divide its outputs
  column,           // some outputs, of which the next linear layer takes its inputs
  row,              // some inputs
  gathered_column,  // some outputs, which are gathered
  head,             // some logits of a language model, of which the loss is computed as they are
};

/// By the layer's name.
using LinearRoles = std::map<std::string, LinearRole>;

/// Of linear layers with element-wise functions between them, the first of two is column parallel
/// and the second row parallel; one that is left over gathers its outputs, or stays whole where the
/// ranks do not divide them. No pair crosses one of `boundaries`, the layers before which
/// activations go to another device. `predicts_tokens`: the model is a language model, whose last
/// layer is its head.
LinearRoles linear_roles(const models::LayerList& layers,
                         const std::vector<std::size_t>& boundaries, int ranks,
                         bool predicts_tokens);

}  // namespace stratagem::tensor_parallel
