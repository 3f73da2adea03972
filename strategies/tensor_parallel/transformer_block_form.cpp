// Blocks of decoders: each rank has its share of the heads and of the MLP's features (Shoeybi et
// al. 2019, "Megatron-LM", section 3). A Llama's query heads stay with their key and value head, of
// which more ranks than there are have copies.
#include <utility>

#include "models/llama.h"
#include "models/transformer.h"
#include "strategies/tensor_parallel/sharded_form.h"
#include "strategies/tensor_parallel/share.h"

namespace stratagem::tensor_parallel {
namespace {

using models::LinearLayer;
using models::LlamaBlock;
using models::TransformerBlock;

bool is_block(const models::Layer& layer) {
  return dynamic_cast<const TransformerBlock*>(&layer) != nullptr;
}

LinearLayer& linear(const LayerPointer& part) { return dynamic_cast<LinearLayer&>(*part); }

LayerPointer part_of_block(LayerPointer whole, Sharder& sharder) {
  auto& block = dynamic_cast<TransformerBlock&>(*whole);
  const std::int64_t heads = block.heads();
  const std::string name = block.name();
  TransformerBlock::Parts parts = std::move(block).take_parts();
  whole.reset();  // it lists the parts' tensors and is dropped with them
  const std::int64_t of_head = linear(parts.projection).weight().size(1) / heads;
  parts.qkv = sharder.column(linear(parts.qkv), {.dimension = 0, .parts = 3, .unit = of_head},
                             /*gather_output=*/false);
  parts.projection = sharder.row(linear(parts.projection), {.dimension = 1, .unit = of_head});
  parts.up = sharder.column(linear(parts.up), by_rows, /*gather_output=*/false);
  parts.down = sharder.row(linear(parts.down), by_columns);
  parts.heads = share_of(heads, sharder.group().rank(), sharder.group().size()).count;
  return std::make_unique<TransformerBlock>(name, std::move(parts));
}

bool is_llama_block(const models::Layer& layer) {
  return dynamic_cast<const LlamaBlock*>(&layer) != nullptr;
}

LayerPointer part_of_llama_block(LayerPointer whole, Sharder& sharder) {
  auto& block = dynamic_cast<LlamaBlock&>(*whole);
  const std::string name = block.name();
  LlamaBlock::Parts parts = std::move(block).take_parts();
  whole.reset();  // it lists the parts' tensors and is dropped with them
  const std::int64_t queries = parts.heads.queries;
  const std::int64_t of_head = linear(parts.projection).weight().size(1) / parts.heads.count();
  const models::GroupedHeads own =
      share_of(parts.heads, sharder.group().rank(), sharder.group().size());
  parts.qkv = sharder.column(
      linear(parts.qkv), {.dimension = 0, .unit = (queries + 2) * of_head, .common = 2 * of_head},
      /*gather_output=*/false);
  parts.projection =
      sharder.row(linear(parts.projection), {.dimension = 1, .unit = own.queries * of_head});
  parts.gate_up = sharder.column(linear(parts.gate_up), {.dimension = 0, .parts = 2},
                                 /*gather_output=*/false);
  parts.down = sharder.row(linear(parts.down), by_columns);
  parts.heads = own;
  return std::make_unique<LlamaBlock>(name, std::move(parts));
}

std::vector<Exchange> exchanges_of_block(const PlacedLayer& whole) {
  using Kind = Exchange::Kind;
  // The first parameter is a normalisation's weight over the features.
  const std::int64_t features = whole.layer.parameters().front().tensor.size(0);
  return {{Kind::input, features},
          {Kind::sum, features},
          {Kind::input, features},
          {Kind::sum, features}};
}

STRATAGEM_REGISTER(ShardedForm{.name = "transformer block",
                               .is_of = is_block,
                               .make = part_of_block,
                               .exchanges = exchanges_of_block});

STRATAGEM_REGISTER(ShardedForm{.name = "Llama block",
                               .is_of = is_llama_block,
                               .make = part_of_llama_block,
                               .exchanges = exchanges_of_block});

}  // namespace
}  // namespace stratagem::tensor_parallel
