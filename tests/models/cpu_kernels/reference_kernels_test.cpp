// Under ReferenceKernelsGuard no model's autograd graph has a node of ours.
#include "models/cpu_kernels/reference_kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "models/workload.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::reference_kernels_test {
namespace {

/// The names of the graph's nodes that are no part of LibTorch.
std::set<std::string> own_nodes(const at::Tensor& output) {
  std::set<std::string> own;
  std::set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> waiting = {output.grad_fn().get()};
  while (!waiting.empty()) {
    const torch::autograd::Node* const node = waiting.back();
    waiting.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (const std::string name = node->name(); name.find("stratagem") != std::string::npos) {
      own.insert(name);
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      waiting.push_back(edge.function.get());
    }
  }
  return own;
}

class ReferenceKernels : public testing::TestWithParam<std::string> {};

TEST_P(ReferenceKernels, AreAllThatAModelTakes) {
  const SingleThread single_thread;
  const bool images = GetParam().starts_with("resnet");
  const bool tokens = GetParam().starts_with("gpt");
  const Workload workload({.model = GetParam(),
                           .batch = 3,
                           .image_size = images ? 64 : 0,
                           .width = 0.25,
                           .loss = tokens ? Loss::cross_entropy : Loss::mse});
  const Batch batch = workload.make_batch(0);
  const Model model = workload.make_model();
  const auto nodes = [&] {
    const at::Tensor output = forward(model.layers, batch.inputs);
    return own_nodes(workload.loss(output, batch.targets, 1.0));
  };
  EXPECT_NE(nodes(), std::set<std::string>{});
  const ReferenceKernelsGuard reference;
  EXPECT_EQ(nodes(), std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceKernels,
                         testing::Values("toy", "mlp", "resnet18", "resnet50", "gpt-tiny"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(ReferenceKernelsGuard, EndsWithItsScopeAndIsTheThreadsOwn) {
  EXPECT_FALSE(uses_reference_kernels());
  {
    const ReferenceKernelsGuard reference;
    EXPECT_TRUE(uses_reference_kernels());
    std::thread([] { EXPECT_FALSE(uses_reference_kernels()); }).join();
    {
      const ReferenceKernelsGuard own(false);
      EXPECT_FALSE(uses_reference_kernels());
    }
    EXPECT_TRUE(uses_reference_kernels());
  }
  EXPECT_FALSE(uses_reference_kernels());
}

}  // namespace
}  // namespace stratagem::models::reference_kernels_test
