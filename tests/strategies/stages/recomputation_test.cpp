// Recomputed activations: the same bits of the update, the statistics of one forward pass, less
// memory, exchanges as counted, and no product that nobody reads.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategies/registry.h"
#include "strategies/stages/stage.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::recomputation_test {
namespace {

struct Case {
  std::string strategy;
  strategies::Spread spread = {};
  strategies::StrategyOptions options = {.split_size = 2};
  std::string model = "resnet18";
  std::int64_t batch = 4;
  bool mixed = false;
};

std::ostream& operator<<(std::ostream& out, const Case& of) {
  return out << of.strategy << " of " << of.model << ", " << of.options.schedule
             << (of.mixed ? ", mixed" : "");
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"single"},
      {"single", {}, {.accumulation_steps = 2}, "gpt-tiny"},
      {"single", {}, {}, "gpt-tiny", 4, true},
      {"model_parallel", {.devices_per_rank = 2}},
      {"pipeline", {.devices_per_rank = 2}, {.split_size = 1}},
      {"pipeline", {.devices_per_rank = 2}, {.split_size = 1, .schedule = "gpipe"}},
      {"pipeline", {.pipeline_ranks = 2}, {.split_size = 1, .schedule = "zb_h1"}, "gpt-tiny"},
      {"pipeline", {.devices_per_rank = 2}, {.split_size = 1, .schedule = "zb_v"}, "gpt-tiny"},
      {"ddp", {.replicas = 2}, {.bucket_mb = 0.01}},
      {"ddp", {.replicas = 2}, {.accumulation_steps = 2, .bucket_mb = 0.01}, "gpt-tiny"},
      {"zero1", {.replicas = 2}, {.accumulation_steps = 2}},
      {"zero2", {.replicas = 2}, {}, "gpt-tiny", 4, true},
      {"zero3", {.replicas = 2}, {.accumulation_steps = 2}},
      {"zero3",
       {.replicas = 2},
       {.accumulation_steps = 2, .recompute_layers = {"layer2", "layer4.0"}}},
      {"pipeline",
       {.devices_per_rank = 2},
       {.split_size = 1, .schedule = "zb_h1", .recompute_layers = {"blocks.0"}},
       "gpt-tiny"},
      {"zero3", {.replicas = 2}, {.reshard_after_forward = false}, "gpt-tiny"},
      {"tensor_parallel", {.tensor_ranks = 2}, {}, "gpt-tiny"},
      {"sequence_parallel", {.tensor_ranks = 2}, {.accumulation_steps = 2}, "gpt-tiny"},
      {"sequence_parallel",
       {.pipeline_ranks = 2, .tensor_ranks = 2},
       {.split_size = 1, .schedule = "zb_h1"},
       "gpt-tiny"},
      {"sequence_parallel", {.tensor_ranks = 2}, {.keep_gathered = true}, "llama-tiny"},
      {"pipeline", {.devices_per_rank = 2}, {.split_size = 1, .schedule = "v_half"}, "llama-tiny"},
      {"zero3", {.replicas = 2, .pipeline_ranks = 2}, {.schedule = "zb_h1"}, "llama-tiny"},
      {"tensor_parallel", {.tensor_ranks = 2}, {}, "llama-tiny", 4, true},
      {"data_parallel", {.devices_per_rank = 2}},
      {"data_parallel", {.devices_per_rank = 2}, {.recompute_layers = {"layer1"}}},
      {"data_parallel", {.devices_per_rank = 2}, {.loss_on = "replicas", .reduce = "overlapped"}}};
  return all;
}

using Recompute = decltype(strategies::StrategyOptions::recompute);

struct Found {
  strategies::StateDictionary state;
  double loss = 0;
};

/// Trains three steps; returns what rank 0 has.
Found trained(const Case& of, const Recompute& recompute) {
  models::WorkloadOptions workload = strategies::small_workload(of.model, of.batch);
  workload.dtype = of.mixed ? at::kBFloat16 : at::kDouble;
  workload.mixed = of.mixed;
  strategies::Spread spread = of.spread;
  spread.sharded = of.strategy.starts_with("zero");
  strategies::StrategyOptions options = of.options;
  options.recompute = recompute;
  Found found;
  runtime::on_ranks(spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, workload, spread);
    training.strategy = strategies::find_strategy(of.strategy).make(training.rank_context(options));
    double loss = 0;
    for (int step = 0; step < 3; ++step) {
      loss = training.strategy->step(training.workload.make_batch(step))->loss();
    }
    const strategies::StateDictionary state = training.strategy->state();
    if (training.rank == 0) found = {.state = state, .loss = loss};
  });
  return found;
}

TEST(Recomputation, LeavesTheBitsOfTheUpdate) {
  for (const Case& of : cases()) {
    SCOPED_TRACE(testing::Message() << of);
    const Found kept = trained(of, "none");
    for (const Recompute recompute : {Recompute("selective"), Recompute("full")}) {
      SCOPED_TRACE(recompute);
      const Found recomputed = trained(of, recompute);
      EXPECT_EQ(recomputed.loss, kept.loss);
      ASSERT_EQ(recomputed.state.size(), kept.state.size());
      for (const auto& [name, tensor] : kept.state) {
        EXPECT_TRUE(at::equal(recomputed.state.at(name), tensor)) << name;
      }
    }
  }
}

double recomputed_flops(const Case& of) {
  models::WorkloadOptions workload = strategies::small_workload(of.model, of.batch);
  workload.width = 1;
  strategies::StrategyOptions options = of.options;
  options.recompute = "full";
  double flops = 0;
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, workload, of.spread);
    training.strategy = strategies::find_strategy(of.strategy).make(training.rank_context(options));
    const double counted = training.strategy->costs(of.batch).recomputed_flops;
    if (training.rank == 0) flops = counted;
  });
  return flops;
}

/// 4 sequences of 8 pass 2 blocks of 64 features again.
TEST(Recomputation, CountsNoProductThatNobodyReads) {
  // Query, key and value, the projection, the MLP's first product and attention of a sequence.
  constexpr double block = 2.0 * 8 * 64 * (192 + 64 + 256) + 4.0 * 8 * 8 * 64;
  constexpr double head = 2.0 * 8 * 64 * 256;
  EXPECT_DOUBLE_EQ(recomputed_flops({"single", {}, {}, "gpt-tiny"}), 4 * 2 * block);
  EXPECT_DOUBLE_EQ(recomputed_flops({"tensor_parallel", {.tensor_ranks = 2}, {}, "gpt-tiny"}),
                   4 * 2 * block);
  // The device of the loss repeats its half of the head, too.
  EXPECT_DOUBLE_EQ(recomputed_flops({"data_parallel", {.devices_per_rank = 2}, {}, "gpt-tiny"}),
                   4 * 2 * block + 2 * head);
  EXPECT_DOUBLE_EQ(recomputed_flops({"single", {}, {.recompute_layers = {"blocks.1"}}, "gpt-tiny"}),
                   4 * block);
  EXPECT_DOUBLE_EQ(
      recomputed_flops(
          {"data_parallel", {.devices_per_rank = 2}, {.recompute_layers = {"blocks"}}, "gpt-tiny"}),
      4 * 2 * block);
}

TEST(Recomputation, RefusesALayerThatTheModelLacks) {
  EXPECT_THAT(
      [] {
        recomputed_flops({"single", {}, {.recompute_layers = {"block"}}, "gpt-tiny"});
      },
      testing::ThrowsMessage<std::invalid_argument>(
          "--recompute-layers: no layer \"block\"; choices: embedding, blocks.0, blocks.1, "
          "norm, head"));
}

/// Returns whether the loss, or the output of a stage without one, is finite after a repeated pass
/// of a block whose last product is not.
bool is_finite_again(bool last) {
  models::WorkloadOptions options = strategies::small_workload("gpt-tiny", 2);
  options.width = 1;
  const models::Workload workload(options);
  models::Model model = workload.make_meta_model();
  models::LayerList layers;
  layers.push_back(std::move(model.layers.at(1)));
  Stage stage(workload, std::move(layers), {.first = false, .last = last}, {}, 1);
  stage.loss = [](const at::Tensor& output, const at::Tensor&, double) { return output.sum(); };
  for (const models::NamedTensor& parameter : models::parameters(stage.layers())) {
    const at::NoGradGuard no_gradient;
    if (!parameter.name.ends_with("mlp.down.weight")) continue;
    parameter.tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  stage.set_input(0, at::randn({2, 8, 64}, at::kDouble));
  stage.set_targets(0, at::zeros({2}));
  stage.forward(0, 1, /*keeps=*/false);
  stage.recompute(0, 1);
  return at::isfinite(last ? stage.take_loss(0) : stage.output(0)).all().item<bool>();
}

TEST(Recomputation, ComputesTheLastProductOnlyForTheLoss) {
  EXPECT_TRUE(is_finite_again(/*last=*/false));
  EXPECT_FALSE(is_finite_again(/*last=*/true));
}

/// The peak of activations of one step on one device, in bytes.
std::int64_t peak_activations(const Recompute& recompute, const char* model = "gpt-tiny",
                              const std::vector<std::string>& layers = {}) {
  models::WorkloadOptions workload = strategies::small_workload(model, 8);
  workload.sequence_length = 32;
  workload.width = 1;
  strategies::Training training(workload, 1);
  strategies::Strategy& strategy =
      training.make("single", {.recompute = recompute, .recompute_layers = layers});
  const models::Batch batch = training.workload.make_batch(0);
  runtime::Device& device = *training.group.devices.front();
  std::int64_t peak = 0;
  for (int step = 0; step < 2; ++step) {
    device.reset_peak_memory();
    strategy.step(batch);
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(60));
    peak = device.memory().by_category.value().peak[runtime::MemoryCategory::activations];
  }
  return peak;
}

TEST(Recomputation, HoldsOneGroupsActivationsAndTheOthersInputs) {
  const std::int64_t kept = peak_activations("none");
  const std::int64_t recomputed = peak_activations("full");
  const std::int64_t one = peak_activations("full", "gpt-tiny", {"blocks.0"});
  EXPECT_GT(recomputed, 0);
  EXPECT_LT(recomputed, kept * 3 / 4);
  EXPECT_LT(recomputed, one);
  EXPECT_LT(one, kept);
}

/// A block of GPT with h features keeps about 16 h a position without recomputation: inputs of the
/// norms and the activation function (6 h), q, k and v (3 h), and inputs of linear layers (7 h).
TEST(Recomputation, SelectiveKeepsNoInputOfALinearLayer) {
  for (const char* model : {"gpt-tiny", "llama-tiny"}) {
    const std::int64_t kept = peak_activations("none", model);
    const std::int64_t recomputed = peak_activations("selective", model);
    EXPECT_LT(recomputed, kept * 8 / 10) << model;
    EXPECT_GT(recomputed, kept / 3) << model;
  }
}

}  // namespace
}  // namespace stratagem::stages::recomputation_test
