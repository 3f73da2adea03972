// Token embeddings: each rank has its share of the vocabulary.
#include "models/transformer.h"
#include "strategies/tensor_parallel/sharded_form.h"
#include "strategies/tensor_parallel/vocabulary_parallel.h"

namespace stratagem::tensor_parallel {
namespace {

using models::TokenEmbeddingLayer;

bool is_embedding(const models::Layer& layer) {
  return dynamic_cast<const TokenEmbeddingLayer*>(&layer) != nullptr;
}

LayerPointer part_of_embedding(LayerPointer whole, Sharder& sharder) {
  auto& layer = dynamic_cast<TokenEmbeddingLayer&>(*whole);
  sharder.materialise(layer);
  const std::int64_t vocabulary = layer.token().size(0);
  return std::make_unique<VocabParallelEmbedding>(
      layer.name(), sharder.slice(layer.name() + ".token.weight", layer.token(), by_rows),
      layer.position().defined() ? layer.position().detach() : at::Tensor(),
      models::TokenEmbeddingOptions{.vocabulary = vocabulary,
                                    .longest_sequence = layer.longest_sequence(),
                                    .has_positions = layer.position().defined(),
                                    .dropout = layer.dropout()},
      sharder.group(), sharder.layout());
}

std::vector<Exchange> exchanges_of_embedding(const PlacedLayer& whole) {
  const auto& layer = dynamic_cast<const TokenEmbeddingLayer&>(whole.layer);
  return {{Exchange::Kind::sum, layer.token().size(1)}};
}

STRATAGEM_REGISTER(ShardedForm{.name = "token embedding",
                               .is_of = is_embedding,
                               .make = part_of_embedding,
                               .exchanges = exchanges_of_embedding});

}  // namespace
}  // namespace stratagem::tensor_parallel
