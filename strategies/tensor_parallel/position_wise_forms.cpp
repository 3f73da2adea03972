// Layers that work on each position separately: each rank has them whole.
#include "models/llama.h"
#include "models/transformer.h"
#include "strategies/tensor_parallel/sharded_form.h"

namespace stratagem::tensor_parallel {
namespace {

bool is_normalisation(const models::Layer& layer) {
  return dynamic_cast<const models::LayerNormLayer*>(&layer) != nullptr ||
         dynamic_cast<const models::RmsNormLayer*>(&layer) != nullptr;
}

bool is_element_wise(const models::Layer& layer) {
  return dynamic_cast<const models::ReluLayer*>(&layer) != nullptr ||
         dynamic_cast<const models::InputGradientLayer*>(&layer) != nullptr;
}

STRATAGEM_REGISTER(ShardedForm{.name = "normalisation", .is_of = is_normalisation});

STRATAGEM_REGISTER(ShardedForm{
    .name = "element-wise", .is_of = is_element_wise, .element_wise = true});

}  // namespace
}  // namespace stratagem::tensor_parallel
