// What a rank has of each layer, what sharded layers exchange by formula, and what a block of them
// keeps for its backward pass.
#include "strategies/tensor_parallel/shard.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>

#include "models/basic_layers.h"
#include "models/transformer.h"
#include "models/workload.h"
#include "strategies/tensor_parallel/exchanges.h"
#include "strategies/tensor_parallel/sharded_form.h"
#include "strategies/tensor_parallel/share.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/tensor_parallel/tensor_rank.h"

namespace stratagem::tensor_parallel::shard_test {
namespace {

/// Its second layer is a block.
models::Workload gpt() {
  return models::Workload({.model = "gpt-tiny", .loss = models::Loss::cross_entropy});
}

/// A transformer block, sharded.
ShardedLayers sharded_block(Rank& rank, Layout layout) {
  const models::Workload workload = gpt();
  models::Model model = workload.make_meta_model();
  models::LayerList block;
  block.push_back(std::move(model.layers[1]));
  return shard(workload, std::move(block), {}, *rank.group, layout);
}

TEST(Exchanges, OfABlockAreTwoInEachDirection) {
  const models::Model model = gpt().make_meta_model();
  const auto exchanges = exchanges_of(models::LayerSpan(model.layers).subspan(1, 1), {},
                                      /*predicts_tokens=*/true, /*ends_model=*/false);
  for (const bool keep_gathered : {false, true}) {
    for (const Layout layout : {Layout::tensor, Layout::sequence}) {
      auto calls = communication_of(exchanges, {layout, keep_gathered, /*ranks=*/2},
                                    {.positions = 96, .element_bytes = 4});
      constexpr std::int64_t activations = 96 * 64 * 4;
      if (layout == Layout::tensor) {
        EXPECT_EQ(calls.size(), 1U);
        EXPECT_EQ(calls["all_reduce"].calls, 4);
        EXPECT_EQ(calls["all_reduce"].payload_bytes, 4 * activations);
      } else {
        const int gathers = keep_gathered ? 4 : 6;  // the two inputs are gathered again
        EXPECT_EQ(calls.size(), 2U);
        EXPECT_EQ(calls["reduce_scatter"].calls, 4);
        EXPECT_EQ(calls["reduce_scatter"].payload_bytes, 4 * activations);
        EXPECT_EQ(calls["all_gather"].calls, gathers);
        EXPECT_EQ(calls["all_gather"].payload_bytes, gathers * activations / 2);
      }
    }
  }
}

/// Three numbers of the loss's format a position, however the layers are cut and whatever format
/// they compute in.
TEST(Exchanges, OfALanguageModelsHeadAreItsInputAndTheLoss) {
  const models::Model model = gpt().make_meta_model();
  const auto exchanges = exchanges_of(models::LayerSpan(model.layers).last(1), {},
                                      /*predicts_tokens=*/true, /*ends_model=*/true);
  const auto calls = communication_of(exchanges, {Layout::tensor, false, /*ranks=*/2},
                                      {.positions = 96, .element_bytes = 2, .loss_bytes = 4});
  EXPECT_EQ(calls, (Communication{{"all_reduce", {3, 96 * 64 * 2 + 96 * 3 * 4}}}));
}

TEST(LinearRoles, AreThoseOfTheWholeModel) {
  const auto roles_of = [](const models::WorkloadOptions& options,
                           const std::vector<std::size_t>& boundaries, int ranks) {
    const models::Workload workload(options);
    return linear_roles(workload.make_meta_model().layers, boundaries, ranks,
                        workload.entry().input_kind == models::InputKind::tokens);
  };
  using Role = LinearRole;
  const models::WorkloadOptions gpt_options = gpt().options();
  EXPECT_EQ(roles_of(gpt_options, {}, 2), (LinearRoles{{"head", Role::head}}));
  // The head alone on its device, over ranks that do not divide the vocabulary.
  EXPECT_EQ(roles_of(gpt_options, {4}, 3), (LinearRoles{{"head", Role::head}}));
  const models::WorkloadOptions toy{.model = "toy"};  // net1, relu, net2: 10 -> 10 -> 5
  EXPECT_EQ(roles_of(toy, {}, 3), (LinearRoles{{"net1", Role::column}, {"net2", Role::row}}));
  EXPECT_EQ(roles_of(toy, {2}, 2),
            (LinearRoles{{"net1", Role::gathered_column}, {"net2", Role::whole}}));
  EXPECT_EQ(roles_of(toy, {2}, 5),
            (LinearRoles{{"net1", Role::gathered_column}, {"net2", Role::gathered_column}}));
}

/// A layer that nothing but this file knows.
class DoublingLayer : public models::Layer {
 public:
  using Layer::Layer;
  at::Tensor forward(const at::Tensor& input) override { return 2 * input; }
  models::Shape output_shape(const models::Shape& input) const override { return input; }
};

STRATAGEM_REGISTER(ShardedForm{.name = "test doubling",
                               .is_of =
                                   [](const models::Layer& layer) {
                                     return dynamic_cast<const DoublingLayer*>(&layer) != nullptr;
                                   },
                               .element_wise = true});

/// Two linear layers, and `between` them.
LinearRoles roles_around(std::unique_ptr<models::Layer> between) {
  models::LayerList layers;
  layers.push_back(std::make_unique<models::LinearLayer>("a", 4, 6));
  layers.push_back(std::move(between));
  layers.push_back(std::make_unique<models::LinearLayer>("b", 6, 3));
  return linear_roles(layers, {}, /*ranks=*/2, /*predicts_tokens=*/false);
}

TEST(LinearRoles, APairStandsAroundElementWiseLayersAlone) {
  using Role = LinearRole;
  const LinearRoles pair{{"a", Role::column}, {"b", Role::row}};
  EXPECT_EQ(roles_around(std::make_unique<models::ReluLayer>("relu")), pair);
  EXPECT_EQ(roles_around(std::make_unique<DoublingLayer>("doubling")), pair);
  // A normalisation needs all features of a position.
  EXPECT_EQ(roles_around(std::make_unique<models::LayerNormLayer>("norm", 6)),
            (LinearRoles{{"a", Role::gathered_column}, {"b", Role::whole}}));
}

TEST(Shard, TakesALayerWhoseFormIsRegistered) {
  runtime::on_ranks(2, [](distributed::RankContext& ranks) {
    Rank rank(ranks);
    models::LayerList layers;
    layers.push_back(std::make_unique<DoublingLayer>("doubling"));
    const ShardedLayers made = shard(gpt(), std::move(layers), {}, *rank.group, Layout::tensor);
    EXPECT_EQ(made.layers.front()->name(), "doubling");
    EXPECT_TRUE(made.parameters.empty());
  });
}

TEST(Shard, RefusesALayerThatItDoesNotKnow) {
  runtime::on_ranks(2, [](distributed::RankContext& ranks) {
    Rank rank(ranks);
    const models::Workload resnet({.model = "resnet18"});
    EXPECT_THROW(shard(resnet, resnet.make_meta_model().layers, {}, *rank.group, Layout::tensor),
                 std::invalid_argument);
  });
}

TEST(Share, FirstRanksHaveOneMoreWhereTheyDoNotDivide) {
  const auto shares = [](std::int64_t count, int ranks) {
    std::vector<Share> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(share_of(count, rank, ranks));
    return all;
  };
  EXPECT_EQ(shares(8, 2), (std::vector<Share>{{0, 4}, {4, 4}}));
  EXPECT_EQ(shares(50257, 2), (std::vector<Share>{{0, 25129}, {25129, 25128}}));
  EXPECT_EQ(shares(5, 4), (std::vector<Share>{{0, 2}, {2, 1}, {3, 1}, {4, 1}}));
}

constexpr std::int64_t samples = 4;
constexpr std::int64_t positions = 32;
constexpr std::int64_t features = 64;

/// What a rank's part of a block keeps of its forward pass, with the output.
std::int64_t bytes_kept_by_a_block(distributed::RankContext& ranks, Layout layout,
                                   bool keep_gathered) {
  Rank rank(ranks, {.keep_gathered = keep_gathered});
  const ShardedLayers block = sharded_block(rank, layout);
  block.layers[0]->materialise(/*seed=*/1, at::kCPU, at::kFloat, at::MemoryFormat::Contiguous);
  const at::Tensor x = at::randn({samples, positions, features});
  const at::Tensor own =
      layout == Layout::sequence ? rank.group->own_part(x, sequence_dimension).contiguous() : x;
  const at::Tensor input = own.detach().requires_grad_(true);
  const backends::MemoryAccount account = 10 + rank.group->rank();
  backends::use_account(account);
  const std::int64_t before = backends::settled_bytes(account);
  const at::Tensor y = block.layers[0]->forward(input);
  return backends::settled_bytes(account) - before;
}

// Korthikanti et al. 2022, section 4.2: by sequence the block's output, both normalised inputs and
// the sum between its parts are a part each, where tensor parallelism has them whole.
TEST(Shard, BySequenceABlockKeepsPartsOfWhatItGathered) {
  std::array<std::int64_t, 2> tensor{};
  std::array<std::int64_t, 2> sequence{};
  std::array<std::int64_t, 2> gathered{};
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.info().rank);
    tensor[rank] = bytes_kept_by_a_block(ranks, Layout::tensor, false);
    sequence[rank] = bytes_kept_by_a_block(ranks, Layout::sequence, false);
    gathered[rank] = bytes_kept_by_a_block(ranks, Layout::sequence, true);
  });
  constexpr std::int64_t half = samples * positions * features * 4 / 2;
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_GE(tensor[rank] - sequence[rank], 4 * half);
    EXPECT_EQ(gathered[rank] - sequence[rank], 2 * half);
  }
}

}  // namespace
}  // namespace stratagem::tensor_parallel::shard_test
