// ddp against PyTorch's DistributedDataParallel on two ranks, float64: loss, gradients and running
// statistics as recorded by make_ddp_reference.py, to a relative 1e-9.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "strategies/presets/staged.h"
#include "strategies/schedules/batch_split.h"
#include "tests/models/reference_values.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::data_parallel {
namespace {

constexpr double tolerance = 1e-9;

nlohmann::json reference() {
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

TEST(Ddp, ComputesPyTorchsGradients) {
  const nlohmann::json expected = reference();
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    const models::WorkloadOptions options = workload_of(expected);
    strategies::RankTraining training(ranks, options, {.replicas = 2});
    const auto context = training.rank_context();
    training.strategy = presets::make_staged(context, "naive", presets::by_count(context, 1));
    training.strategy->load(filled(training.workload.make_model()));
    const auto step = training.strategy->step(batch_of(expected));
    const strategies::StateDictionary state = training.strategy->state();
    EXPECT_NEAR(step->loss(), expected.at("loss").get<double>(), tolerance);
    for (const auto& [name, figures] : expected.at("gradients").items()) {
      const at::Tensor& gradient = state.at("gradient." + name);
      const double norm = figures[0];
      EXPECT_NEAR(gradient.norm().item<double>(), norm, tolerance * norm) << name;
      EXPECT_NEAR(models::checksum(gradient), figures[1].get<double>(),
                  tolerance * std::max(norm, std::abs(figures[1].get<double>())))
          << name;
    }
    if (training.rank != 0) return;  // running statistics are each rank's own until the next step
    for (const auto& [name, sum] : expected.at("buffers").items()) {
      EXPECT_NEAR(models::checksum(state.at(name)), sum.get<double>(),
                  tolerance * std::abs(sum.get<double>()))
          << name;
    }
  });
}

}  // namespace
}  // namespace stratagem::data_parallel
