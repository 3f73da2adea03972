// What a device holds of the model's state is, to the byte, what its strategy's costs say, and the
// rest of its memory is told apart.
#include <ATen/ATen.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <tuple>
#include <vector>

#include "models/transformer.h"
#include "strategies/backends/memory_costs.h"
#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::presets::memory_test {
namespace {

using backends::MemoryCategory;
using Kind = models::OptimizerOptions::Kind;

/// Ranks are threads of this process: each of their devices has an account of its own.
backends::DeviceGroup devices_with_accounts_of_their_own(int count) {
  static std::atomic<int> next{0};
  backends::DeviceGroup group;
  group.monitor = std::make_shared<runtime::Monitor>();
  for (int index = 0; index < count; ++index) {
    runtime::DeviceDescription description;
    description.index = 16 + next++ % (runtime::most_devices - 16);
    group.devices.push_back(backends::make_cpu_device(description, group.monitor, nullptr));
  }
  return group;
}

struct Case {
  std::string strategy = "single";
  std::string model = "gpt-tiny";
  strategies::Spread spread = {};
  strategies::StrategyOptions options = {.split_size = 2};
  std::int64_t batch = 4;
  models::OptimizerOptions optimizer = {.kind = Kind::adamw};
  at::ScalarType dtype = at::kDouble;
  bool mixed = false;
};

std::ostream& operator<<(std::ostream& stream, const Case& of) {
  return stream << of.strategy << " of " << of.model << ", " << of.options.schedule << ", "
                << of.spread.replicas << "x" << of.spread.pipeline_ranks << "x"
                << of.spread.tensor_ranks << ", " << of.spread.devices_per_rank
                << " devices a rank, batch " << of.batch << ", accumulation "
                << of.options.accumulation_steps << ", optimizer "
                << static_cast<int>(of.optimizer.kind) << " " << of.optimizer.momentum << ", "
                << of.dtype << (of.mixed ? " mixed, sums of " : ", sums of ")
                << of.options.reduce_dtype.name() << " by " << of.options.reduce_scatter.name();
}

models::WorkloadOptions workload_of(const Case& of) {
  models::WorkloadOptions options = strategies::small_workload(of.model, of.batch);
  options.optimizer = of.optimizer;
  options.dtype = of.dtype;
  options.mixed = of.mixed;
  return options;
}

/// A training of a rank, on devices with accounts of their own.
struct Accounted : strategies::RankTraining {
  Accounted(distributed::RankContext& ranks, const Case& of)
      : RankTraining(ranks, workload_of(of), spread_of(of)) {}

  static strategies::Spread spread_of(const Case& of) {
    strategies::Spread spread = of.spread;
    spread.devices = devices_with_accounts_of_their_own;
    return spread;
  }

  void reset_peaks() {
    for (const auto& device : group.devices) device->reset_peak_memory();
  }
  void steps(int count) {
    const auto batch = workload.make_batch(0);
    for (int step = 0; step < count; ++step) {
      strategy->step(batch);
      runtime::synchronize_all(group.devices, std::chrono::seconds(20));
    }
  }
  std::string difference() {
    return backends::difference_from_costs(group.devices,
                                           strategy->costs(workload.options().batch).memory);
  }
  runtime::CategorizedMemory memory(std::size_t device = 0) {
    return *group.devices[device]->memory().by_category;
  }
};

using Test = std::function<void(Accounted&)>;

void on_ranks(const Case& of, const Test& test) {
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    Accounted training(ranks, of);
    training.strategy =
        strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
    test(training);
  });
}

void expect_formula(const Case& of) {
  on_ranks(of, [&of](Accounted& training) {
    ASSERT_EQ(training.strategy->costs(of.batch).memory.size(), training.group.devices.size());
    training.reset_peaks();
    training.steps(3);
    EXPECT_EQ(training.difference(), "") << of << ", from the first step on";
    training.reset_peaks();
    training.steps(1);
    EXPECT_EQ(training.difference(), "") << of << ", later";
    const auto state = training.strategy->state();
    training.strategy->load(state);
    for (const auto& device : training.group.devices) {
      backends::settled_bytes(backends::account_of(device->description()));
    }
    training.reset_peaks();
    training.steps(1);
    EXPECT_EQ(training.difference(), "") << of << ", after a load";
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model : {"toy", "mlp", "resnet18", "gpt-tiny"}) {
    all.push_back({.model = model});
    all.push_back(
        {.strategy = "model_parallel", .model = model, .spread = {.devices_per_rank = 2}});
    all.push_back({.strategy = "pipeline", .model = model, .spread = {.pipeline_ranks = 2}});
    all.push_back({.strategy = "ddp", .model = model, .spread = {.replicas = 2}});
    all.push_back({.strategy = "data_parallel", .model = model, .spread = {.devices_per_rank = 2}});
  }
  for (const char* schedule : {"naive", "gpipe", "zb_h1", "zb_v"}) {
    all.push_back({.strategy = "pipeline",
                   .spread = {.pipeline_ranks = 2},
                   .options = {.split_size = 1, .schedule = schedule}});
  }
  for (const char* strategy : {"tensor_parallel", "sequence_parallel"}) {
    all.push_back({.strategy = strategy, .spread = {.tensor_ranks = 2}});
    all.push_back({.strategy = strategy, .spread = {.pipeline_ranks = 2, .tensor_ranks = 2}});
    all.push_back({.strategy = strategy, .spread = {.replicas = 2, .tensor_ranks = 2}});
    all.push_back({.strategy = strategy,
                   .spread = {.tensor_ranks = 2},
                   .options = {.split_size = 2, .keep_gathered = true}});
  }
  all.push_back(
      {.strategy = "ddp_model_parallel", .spread = {.replicas = 2, .devices_per_rank = 2}});
  all.push_back({.strategy = "ddp",
                 .spread = {.replicas = 2},
                 .options = {.accumulation_steps = 2, .bucket_mb = 0.01}});
  all.push_back({.strategy = "ddp",
                 .spread = {.replicas = 2},
                 .options = {.bucket_mb = 0.01, .compression = "fp16"}});
  for (const models::OptimizerOptions& optimizer :
       {models::OptimizerOptions{}, models::OptimizerOptions{.momentum = 0.9},
        models::OptimizerOptions{.kind = Kind::adam, .clip_norm = 1e-3}}) {
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
      all.push_back({.model = "mlp", .optimizer = optimizer, .dtype = dtype});
    }
    all.push_back({.strategy = "ddp", .spread = {.replicas = 2}, .optimizer = optimizer});
  }
  return all;
}

/// Over all replicas, and over groups of them.
std::vector<Case> sharded_cases() {
  std::vector<Case> all;
  for (const char* strategy : {"zero1", "zero2", "zero3"}) {
    for (const int groups : {1, 2}) {
      all.push_back({.strategy = strategy, .spread = {.replicas = 4, .shard_groups = groups}});
    }
  }
  return all;
}

std::vector<Case> mixed_cases() {
  std::vector<Case> all = {
      {.strategy = "sequence_parallel", .spread = {.tensor_ranks = 2}},
      {.strategy = "ddp", .spread = {.replicas = 2}, .options = {.accumulation_steps = 2}},
      {.strategy = "zero1", .spread = {.replicas = 2}},
      {.strategy = "zero1", .spread = {.replicas = 2}, .options = {.accumulation_steps = 2}},
      {.strategy = "zero2", .spread = {.replicas = 2}, .options = {.accumulation_steps = 2}}};
  const strategies::StrategyOptions same{.reduce_dtype = "same"};
  const strategies::StrategyOptions by_library{.reduce_scatter = "library"};
  for (const auto& sums : {same, by_library}) {
    for (Case of : std::vector<Case>(all.begin(), all.begin() + 5)) {
      of.options.reduce_dtype = sums.reduce_dtype;
      of.options.reduce_scatter = sums.reduce_scatter;
      all.push_back(of);
    }
  }
  for (Case& of : all) {
    of.dtype = at::kBFloat16;
    of.mixed = true;
  }
  return all;
}

std::vector<Case> rungs_of_data_parallel() {
  const strategies::Spread three{.devices_per_rank = 3};
  std::vector<Case> all = {
      {.strategy = "data_parallel", .spread = three, .options = {.output_device = 1}},
      {.strategy = "data_parallel", .spread = three, .options = {.loss_on = "replicas"}},
      {.strategy = "data_parallel", .spread = three, .options = {.replicate = "kept"}},
      {.strategy = "data_parallel", .spread = three, .options = {.reduce = "overlapped"}},
      {.strategy = "data_parallel",
       .spread = three,
       .options = {.bucket_mb = 0.01, .replicate = "kept", .update = "everywhere"}}};
  for (Case of : std::vector<Case>(all)) {
    of.batch = 2;  // the third device has no samples
    all.push_back(of);
  }
  return all;
}

TEST(MemoryOfTheState, IsWhatTheCostsSay) {
  for (const Case& of : cases()) expect_formula(of);
}

TEST(MemoryOfTheState, IsWhatTheCostsSayOfShards) {
  for (const Case& of : sharded_cases()) expect_formula(of);
  for (const char* strategy : {"zero1", "zero2", "zero3"}) {
    const auto optimizer_bytes = [&](const strategies::Spread& spread) {
      std::int64_t bytes = 0;
      on_ranks({.strategy = strategy, .model = "gpt-tiny", .spread = spread},
               [&](Accounted& training) {
                 if (training.rank == 0) bytes = training.strategy->costs(4).memory[0].optimizer;
               });
      return bytes;
    };
    EXPECT_EQ(optimizer_bytes({.replicas = 4, .shard_groups = 2}), optimizer_bytes({.replicas = 2}))
        << strategy << ": of two shards, however many have the same";
  }
}

TEST(MemoryOfTheState, IsWhatTheCostsSayInMixedPrecision) {
  for (const Case& of : mixed_cases()) expect_formula(of);
}

TEST(MemoryOfTheState, IsWhatTheCostsSayOnEveryRungOfDataParallel) {
  for (const Case& of : rungs_of_data_parallel()) expect_formula(of);
}

/// By hand: an mlp's parameters, and what each optimizer has of them.
TEST(MemoryOfTheState, OfOneDevice) {
  for (const auto& [optimizer, of_parameters, of_a_tensor] :
       {std::tuple{models::OptimizerOptions{}, 0, 0},
        std::tuple{models::OptimizerOptions{.momentum = 0.9}, 1, 0},
        std::tuple{models::OptimizerOptions{.kind = Kind::adamw}, 2, 4}}) {
    on_ranks({.model = "mlp", .optimizer = optimizer, .dtype = at::kFloat},
             [&, of_parameters = of_parameters, of_a_tensor = of_a_tensor](Accounted& training) {
               std::int64_t elements = 0;
               std::int64_t tensors = 0;
               const models::Model model = training.workload.make_meta_model();
               for (const auto& [_, tensor] : models::parameters(model.layers)) {
                 elements += tensor.numel();
                 ++tensors;
               }
               training.steps(2);
               const runtime::CategorizedMemory memory = training.memory();
               EXPECT_EQ(memory.current[MemoryCategory::parameters], 4 * elements);
               EXPECT_EQ(memory.current[MemoryCategory::gradients], 4 * elements);
               EXPECT_EQ(memory.current[MemoryCategory::optimizer],
                         of_parameters * 4 * elements + of_a_tensor * tensors);
             });
  }
}

TEST(MemoryOfAStep, ActivationsAreFreeAgainAndInputsAreStaged) {
  on_ranks({.model = "mlp", .optimizer = {.momentum = 0.9}}, [](Accounted& training) {
    training.steps(2);
    training.reset_peaks();
    training.steps(1);
    const models::Batch batch = training.workload.make_batch(0);
    const runtime::CategorizedMemory memory = training.memory();
    EXPECT_EQ(memory.peak[MemoryCategory::staging],
              static_cast<std::int64_t>(batch.inputs.nbytes() + batch.targets.nbytes()));
    EXPECT_GT(memory.peak[MemoryCategory::activations], 0);
    EXPECT_EQ(memory.peak[MemoryCategory::communication], 0);
    EXPECT_EQ(memory.peak[MemoryCategory::other], 0) << "no normalisation, no clipping";
    EXPECT_EQ(memory.at_peak[MemoryCategory::parameters], memory.peak[MemoryCategory::parameters]);
  });
}

/// The layers' boundary is [batch, features]: what a rank receives, one micro-batch ahead.
TEST(MemoryOfAStep, WhatRanksExchangeIsCommunication) {
  const Case of{.strategy = "pipeline", .model = "mlp", .spread = {.pipeline_ranks = 2}};
  on_ranks(of, [](Accounted& training) {
    training.steps(1);
    training.reset_peaks();
    training.steps(1);
    const runtime::CategorizedMemory memory = training.memory();
    EXPECT_GT(memory.peak[MemoryCategory::communication], 0);
    EXPECT_LT(memory.peak[MemoryCategory::communication],
              memory.peak[MemoryCategory::activations] + memory.peak[MemoryCategory::staging]);
  });
}

/// Gradients are summed where they are. In half precision they are copied first. Two ranks send
/// each other all of so few: two copies are sent and two received.
TEST(MemoryOfAStep, WhatGradientsAreSentFromIsCommunication) {
  using Compression = decltype(strategies::StrategyOptions::compression);
  for (const auto& [compression, bytes_an_element] :
       {std::pair{Compression("none"), 0}, std::pair{Compression("fp16"), 2 + 4 * 2}}) {
    const Case of{.strategy = "ddp",
                  .model = "mlp",
                  .spread = {.replicas = 2},
                  .options = {.overlap = false, .compression = compression},
                  .dtype = at::kFloat};
    on_ranks(of, [expected = bytes_an_element](Accounted& training) {
      training.steps(2);
      backends::settled_bytes(backends::account_of(training.group.devices[0]->description()));
      training.reset_peaks();
      training.steps(1);
      const runtime::CategorizedMemory memory = training.memory();
      const std::int64_t elements = memory.peak[MemoryCategory::parameters] / 4;
      EXPECT_EQ(memory.peak[MemoryCategory::communication], expected * elements);
    });
  }
}

// As Gloo's thread holds it until that runs again.
TEST(MemoryOfAStep, AnOldGradientGoesAlthoughSomebodyStillHoldsIt) {
  for (const Case& of :
       {Case{.strategy = "ddp", .spread = {.replicas = 2}},
        Case{.strategy = "zero3", .spread = {.replicas = 2}},
        Case{.strategy = "ddp", .spread = {.replicas = 2}, .options = {.accumulation_steps = 2}}}) {
    on_ranks(of, [&of](Accounted& training) {
      training.steps(1);
      const strategies::StatePieces held = training.strategy->own_state(/*with_gradients=*/true);
      training.reset_peaks();
      training.steps(1);
      EXPECT_EQ(training.difference(), "") << of;
    });
  }
}

/// What layers gather by sequence stays until their backward passes where it is kept: two layers of
/// each block gather their inputs, [32, 8, features] in float64, and so does the head.
TEST(MemoryOfAStep, GatheredInputsAreCommunication) {
  const Case of{.strategy = "sequence_parallel",
                .spread = {.tensor_ranks = 2},
                .options = {.keep_gathered = true},
                .batch = 32};
  const models::Model model = models::Workload(workload_of(of)).make_meta_model();
  const auto blocks = std::ranges::count_if(model.layers, [](const auto& layer) {
    return dynamic_cast<const models::TransformerBlock*>(layer.get()) != nullptr;
  });
  const std::int64_t whole =
      c10::multiply_integers(model.layers.front()->output_shape({of.batch, 8})) * std::int64_t{8};
  EXPECT_GT(blocks, 1);
  on_ranks(of, [least = (2 * blocks + 1) * whole](Accounted& training) {
    training.steps(1);
    training.reset_peaks();
    training.steps(1);
    EXPECT_GE(training.memory().peak[MemoryCategory::communication], least);
  });
}

/// Keeps a copy of the gradients, as a strategy might that forgets to free them.
class KeepsGradients : public stages::StagedStrategy {
 public:
  explicit KeepsGradients(const strategies::StrategyContext& context)
      : stages::StagedStrategy(context, strategies::planner_of(context, {})) {}
  ~KeepsGradients() override { come_to_rest(); }

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override {
    stages::StagedStrategy::perform(action, step);
    if (action.kind != schedules::ActionKind::backward) return;
    const backends::MemoryCategoryGuard gradients(MemoryCategory::gradients);
    kept_ = models::parameters(stage(0).layers()).back().tensor.grad().clone();
  }

 private:
  at::Tensor kept_;
};

TEST(MemoryOfTheState, ACopyOfAGradientTooManyIsTold) {
  on_ranks({.model = "mlp"}, [](Accounted& training) {
    const std::int64_t expected =
        training.strategy->costs(training.workload.options().batch).memory[0].gradients;
    training.strategy = std::make_unique<KeepsGradients>(training.rank_context());
    training.reset_peaks();
    training.steps(1);
    EXPECT_EQ(training.difference(),
              fmt::format("{}: gradients took {} bytes at most, by formula {}",
                          training.group.devices[0]->description().name(),
                          expected + 7 * std::int64_t{sizeof(double)}, expected));
  });
}

}  // namespace
}  // namespace stratagem::presets::memory_test
