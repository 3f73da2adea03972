// A language model against PyTorch's, float64, as recorded by make_gpt_reference.py or
// make_llama_reference.py.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/loss.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/registry/registry.h"
#include "tests/models/reference_values.h"

namespace stratagem::models {

/// Compares output, loss, gradients and an update by AdamW.
inline void expect_pytorchs(const std::string& name, const std::string& file, double tolerance) {
  const auto expect_close = [tolerance](double actual, double expected, double scale,
                                        const std::string& what) {
    EXPECT_LE(std::abs(actual - expected), tolerance * std::max(std::abs(expected), scale)) << what;
  };
  std::ifstream stream(STRATAGEM_TEST_DATA "/models/" + file);
  const auto expected = nlohmann::json::parse(stream);
  const ModelEntry& entry = find_model(name);
  const Model model = entry.make({});
  std::vector<std::string> names;
  auto all = parameters(model.layers);
  for (const auto& layer : model.layers) {
    layer->materialise(0, at::kCPU, at::kDouble, at::MemoryFormat::Contiguous);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const at::NoGradGuard no_grad;
    names.push_back(all[i].name);
    all[i].tensor.copy_(value(all[i].name, i, all[i].tensor.sizes()));
  }
  EXPECT_EQ(names, expected.at("parameters").get<std::vector<std::string>>());

  const std::int64_t batch = expected.at("batch");
  const at::Tensor drawn =
      ((uniform(expected.at("input_index"), {batch, entry.longest_sequence + 1}) + 0.5) *
       static_cast<double>(entry.classes))
          .to(at::kLong);
  const at::Tensor output =
      forward(model.layers, drawn.narrow(1, 0, entry.longest_sequence).contiguous());
  const at::Tensor value =
      loss(Loss::cross_entropy, output, drawn.narrow(1, 1, entry.longest_sequence), 1.0);
  expect_close(checksum(output), expected.at("output_checksum"), 1, "output");
  for (std::int64_t i = 0; i < 8; ++i) {
    expect_close(output[0][0][i].item<double>(),
                 expected.at("output_first")[static_cast<std::size_t>(i)], 1, "first outputs");
  }
  expect_close(value.item<double>(), expected.at("loss"), 0, "loss");
  value.backward();
  std::vector<at::Tensor> before;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double norm = expected.at("gradients")[i][0];
    const at::Tensor gradient = all[i].tensor.grad();
    expect_close(gradient.norm().item<double>(), norm, norm, names[i] + " norm");
    expect_close(checksum(gradient), expected.at("gradients")[i][1], norm, names[i] + " checksum");
    before.push_back(all[i].tensor.detach().clone());
  }
  Optimizer(all,
            {.kind = OptimizerOptions::Kind::adamw, .learning_rate = 1e-3, .weight_decay = 0.1})
      .step();
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect_close(checksum(all[i].tensor.detach() - before[i]), expected.at("update_checksums")[i],
                 1, names[i] + " update");
  }
}

}  // namespace stratagem::models
