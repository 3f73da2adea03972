// ddp against PyTorch's DistributedDataParallel on two ranks, float64, with and without
// accumulation under no_sync: loss, gradients and running statistics as recorded by
// make_ddp_reference.py, to a relative 1e-9.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "strategies/registry.h"
#include "tests/models/reference_values.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::data_parallel::ddp_reference_test {
namespace {

constexpr double tolerance = 1e-9;

nlohmann::json recorded() {
  std::ifstream file(STRATAGEM_TEST_DATA "/strategies/reference_ddp.json");
  return nlohmann::json::parse(file);
}

models::WorkloadOptions workload_of(const nlohmann::json& expected) {
  models::WorkloadOptions options;
  options.model = "resnet18";
  options.batch = expected.at("batch");
  options.image_size = expected.at("image");
  options.dtype = at::kDouble;
  return options;
}

/// The reference's parameters and statistics under their names.
strategies::StateDictionary filled(const models::Model& model) {
  strategies::StateDictionary state;
  auto tensors = models::parameters(model.layers);
  const auto buffers = models::buffers(model.layers);
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const auto& [name, tensor] = tensors[index];
    state[name] = tensor.is_floating_point() ? models::value(name, index, tensor.sizes())
                                             : at::zeros_like(tensor);
  }
  return state;
}

models::Batch batch_of(const nlohmann::json& expected) {
  const std::int64_t batch = expected.at("batch");
  const std::int64_t image = expected.at("image");
  const auto labels = at::tensor(expected.at("labels").get<std::vector<std::int64_t>>());
  const at::Tensor inputs =
      models::uniform(expected.at("input_index").get<std::uint64_t>(), {batch, 3, image, image}) *
      3.0;
  return {inputs.contiguous(at::MemoryFormat::ChannelsLast),
          at::one_hot(labels, 1000).to(at::kDouble)};
}

void expect_figures(const strategies::StateDictionary& state, const nlohmann::json& expected,
                    int rank) {
  for (const auto& [name, figures] : expected.at("gradients").items()) {
    const at::Tensor& gradient = state.at("gradient." + name);
    const double norm = figures[0];
    EXPECT_NEAR(gradient.norm().item<double>(), norm, tolerance * norm) << name;
    EXPECT_NEAR(models::checksum(gradient), figures[1].get<double>(),
                tolerance * std::max(norm, std::abs(figures[1].get<double>())))
        << name;
  }
  if (rank != 0) return;  // running statistics are each rank's own until the next step
  for (const auto& [name, sum] : expected.at("buffers").items()) {
    EXPECT_NEAR(models::checksum(state.at(name)), sum.get<double>(),
                tolerance * std::abs(sum.get<double>()))
        << name;
  }
}

struct Case {
  strategies::Spread spread = {.replicas = 2};
  std::int64_t accumulation_steps = 1;
};

TEST(Ddp, ComputesPyTorchsGradients) {
  const nlohmann::json reference = recorded();
  const strategies::StateDictionary start =
      filled(models::Workload(workload_of(reference)).make_model());
  const models::Batch batch = batch_of(reference);
  for (const nlohmann::json& expected : reference.at("runs")) {
    const Case of{.accumulation_steps = expected.at("accumulation_steps").get<std::int64_t>()};
    SCOPED_TRACE(testing::Message() << of.accumulation_steps << " accumulation steps");
    strategies::over_the_backend_in_order(of, [&](const Case& each) {
      runtime::on_ranks(each.spread.ranks(), [&](distributed::RankContext& ranks) {
        strategies::RankTraining training(ranks, workload_of(reference), each.spread);
        const auto context = training.rank_context({.accumulation_steps = each.accumulation_steps});
        training.strategy = strategies::find_strategy("ddp").make(context);
        training.strategy->load(start);
        const auto step = training.strategy->step(batch);
        const strategies::StateDictionary state = training.strategy->state();
        EXPECT_NEAR(step->loss(), expected.at("loss").get<double>(), tolerance);
        expect_figures(state, expected, training.rank);
      });
    });
  }
}

}  // namespace
}  // namespace stratagem::data_parallel::ddp_reference_test
