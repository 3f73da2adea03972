// Our optimizers against torch::optim's, float64, several steps.

#include "models/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace stratagem::models::optimizer_test {
namespace {

using Kind = OptimizerOptions::Kind;

std::vector<NamedTensor> make_parameters(at::ScalarType dtype = at::kDouble) {
  const auto values = [dtype](at::IntArrayRef sizes) {
    return at::linspace(-1, 2, c10::multiply_integers(sizes)).to(dtype).reshape(sizes);
  };
  std::vector<NamedTensor> parameters{
      {"conv.weight", values({4, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)},
      {"fc.weight", values({5, 7})},
      {"fc.bias", values({5})}};
  for (NamedTensor& parameter : parameters) {
    parameter.tensor.requires_grad_(true);
  }
  return parameters;
}

std::vector<at::Tensor> tensors(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> all;
  for (const NamedTensor& one : named) {
    all.push_back(one.tensor);
  }
  return all;
}

void set_gradients(const std::vector<NamedTensor>& parameters, int step) {
  for (const NamedTensor& parameter : parameters) {
    const at::Tensor& p = parameter.tensor;
    p.mutable_grad() = (p.detach() * 3 + step).sin();
  }
}

struct Case {
  const char* name;
  OptimizerOptions options;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> oracle;
};

std::vector<Case> cases() {
  using torch::optim::AdamOptions;
  using torch::optim::AdamWOptions;
  using torch::optim::SGDOptions;
  return {
      {"sgd",
       {.kind = Kind::sgd, .learning_rate = 0.1},
       [](std::vector<at::Tensor> p) {
         return std::make_unique<torch::optim::SGD>(p, SGDOptions(0.1));
       }},
      {"momentum",
       {.kind = Kind::sgd, .learning_rate = 0.1, .momentum = 0.9},
       [](std::vector<at::Tensor> p) {
         return std::make_unique<torch::optim::SGD>(p, SGDOptions(0.1).momentum(0.9));
       }},
      {"momentum_decay",
       {.kind = Kind::sgd, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01},
       [](std::vector<at::Tensor> p) {
         return std::make_unique<torch::optim::SGD>(
             p, SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
       }},
      {"adam",
       {.kind = Kind::adam, .learning_rate = 1e-3},
       [](std::vector<at::Tensor> p) {
         return std::make_unique<torch::optim::Adam>(p, AdamOptions(1e-3));
       }},
      {"adam_decay",
       {.kind = Kind::adam, .learning_rate = 1e-3, .weight_decay = 0.01},
       [](std::vector<at::Tensor> p) {
         return std::make_unique<torch::optim::Adam>(p, AdamOptions(1e-3).weight_decay(0.01));
       }},
      {"adamw",
       {.kind = Kind::adamw, .learning_rate = 1e-3, .weight_decay = 0.01},
       [](std::vector<at::Tensor> p) {
         return std::make_unique<torch::optim::AdamW>(p, AdamWOptions(1e-3).weight_decay(0.01));
       }},
  };
}

void expect_equal(const std::vector<NamedTensor>& actual, const std::vector<NamedTensor>& expected,
                  double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].name, expected[i].name);
    const double error = (actual[i].tensor - expected[i].tensor).abs().max().item<double>();
    EXPECT_LE(error, tolerance) << actual[i].name;
  }
}

TEST(Optimizer, EqualsTorchOverSeveralSteps) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<NamedTensor> ours = make_parameters();
    const std::vector<NamedTensor> theirs = make_parameters();
    Optimizer optimizer(ours, one.options);
    const auto oracle = one.oracle(tensors(theirs));
    for (int step = 0; step < 4; ++step) {
      set_gradients(ours, step);
      set_gradients(theirs, step);
      optimizer.step();
      oracle->step();
      expect_equal(ours, theirs, 1e-14);
    }
    EXPECT_GT((ours[0].tensor - make_parameters()[0].tensor).abs().max().item<double>(), 1e-4);
  }
}

// A gradient in another memory order than its parameter must not be read as if it were in the same.
TEST(Optimizer, GradientsInAnotherLayoutGiveTheSameStep) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<NamedTensor> expected = make_parameters();
    const std::vector<NamedTensor> actual = make_parameters();
    Optimizer(expected, one.options).step();  // without gradients: no change
    set_gradients(expected, 1);
    set_gradients(actual, 1);
    actual[0].tensor.mutable_grad() = actual[0].tensor.grad().contiguous();
    ASSERT_FALSE(actual[0].tensor.grad().is_contiguous(at::MemoryFormat::ChannelsLast));
    Optimizer(expected, one.options).step();
    Optimizer(actual, one.options).step();
    expect_equal(actual, expected, 0);
  }
}

/// How often this thread calls an ATen operator; a callback captures nothing.
thread_local int calls_of_foreach_add = 0;

TEST(Optimizer, AdamCountsTheStepsOfAllParametersInOneCall) {
  const std::vector<NamedTensor> parameters = make_parameters();
  Optimizer optimizer(parameters, {.kind = Kind::adam});
  set_gradients(parameters, 0);
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        if (std::string_view(function.name()) == "aten::_foreach_add_") ++calls_of_foreach_add;
        return nullptr;
      }));
  optimizer.step();
  at::removeCallback(handle);
  EXPECT_EQ(calls_of_foreach_add, 1);
}

TEST(Optimizer, LowerPrecisionSteps) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const Case& one : cases()) {
      const std::vector<NamedTensor> parameters = make_parameters(dtype);
      const std::vector<NamedTensor> exact = make_parameters();
      Optimizer optimizer(parameters, one.options);
      Optimizer exact_optimizer(exact, one.options);
      set_gradients(parameters, 0);
      set_gradients(exact, 0);
      optimizer.step();
      exact_optimizer.step();
      expect_equal(parameters, exact, dtype == at::kFloat ? 1e-6 : 2e-2);
    }
  }
}

TEST(Optimizer, StateContinuesInAnotherOptimizer) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<NamedTensor> whole = make_parameters();
    Optimizer uninterrupted(whole, one.options);
    const std::vector<NamedTensor> parts = make_parameters();
    Optimizer before(parts, one.options);
    EXPECT_TRUE(before.state().empty());
    for (int step = 0; step < 2; ++step) {
      set_gradients(whole, step);
      uninterrupted.step();
      set_gradients(parts, step);
      before.step();
    }
    std::map<std::string, at::Tensor> saved{{"model.something", at::ones({2})}};
    for (const NamedTensor& entry : before.state()) {
      saved.emplace(entry.name, entry.tensor.clone());
    }
    Optimizer after(parts, one.options);
    after.load(saved);
    set_gradients(whole, 2);
    uninterrupted.step();
    set_gradients(parts, 2);
    after.step();
    expect_equal(parts, whole, 0);
    expect_equal(after.state(), uninterrupted.state(), 0);
  }
}

TEST(Optimizer, StateHasNames) {
  const std::vector<NamedTensor> parameters = make_parameters();
  Optimizer optimizer(parameters, {.kind = Kind::adam});
  parameters[2].tensor.mutable_grad() = at::ones_like(parameters[2].tensor.detach());
  optimizer.step();
  const std::vector<NamedTensor> state = optimizer.state();
  ASSERT_EQ(state.size(), 3U);
  EXPECT_EQ(state[0].name, "optimizer.exp_avg.fc.bias");
  EXPECT_EQ(state[1].name, "optimizer.exp_avg_sq.fc.bias");
  EXPECT_EQ(state[2].name, "optimizer.step.fc.bias");
  EXPECT_EQ(state[2].tensor.item<double>(), 1);
}

TEST(Optimizer, LoadRefusesWhatDoesNotFit) {
  Optimizer optimizer(make_parameters(), {.kind = Kind::adam});
  EXPECT_THROW(optimizer.load({{"optimizer.step.fc.bias", at::ones({})}}), std::invalid_argument);
  EXPECT_THROW(optimizer.load({{"optimizer.exp_avg.fc.bias", at::ones({6})}}),
               std::invalid_argument);
  optimizer.load({});
  EXPECT_TRUE(optimizer.state().empty());
}

TEST(Optimizer, ZeroGradDropsGradients) {
  const std::vector<NamedTensor> parameters = make_parameters();
  set_gradients(parameters, 0);
  Optimizer optimizer(parameters, {});
  optimizer.zero_grad();
  EXPECT_FALSE(parameters[0].tensor.grad().defined());
}

TEST(Optimizer, OptionsOutOfRangeAreRefused) {
  EXPECT_THROW(Optimizer({}, {.learning_rate = -1}), std::invalid_argument);
  EXPECT_THROW(Optimizer({}, {.momentum = -0.1}), std::invalid_argument);
  EXPECT_THROW(Optimizer({}, {.weight_decay = -1}), std::invalid_argument);
  EXPECT_THROW(Optimizer({}, {.beta2 = 1}), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::models::optimizer_test
