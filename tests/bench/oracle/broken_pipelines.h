// A pipeline of two stages that is right, and made from it one for each mistake that a verification
// must see.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::bench::broken {

using models::Batch;
using schedules::Action;
using schedules::ActionKind;
using stages::StagedStrategy;
using strategies::StrategyContext;

/// Two stages, 1f1b: right as it is, and what the broken ones are made from.
class PipelineOfTwo : public StagedStrategy {
 public:
  explicit PipelineOfTwo(const StrategyContext& context)
      : StagedStrategy(
            context,
            strategies::planner_of(context, {.schedule = "1f1b",
                                             .cut_by = strategies::MicroBatchOption::split_size})) {
  }

 protected:
  std::vector<models::NamedTensor> parameters(int index) {
    return models::parameters(stage(index).layers());
  }
};

/// The last micro-batch goes forward, never backward.
class LosesAMicroBatch : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    const bool lost = action.micro_batch == 1 && (action.kind == ActionKind::backward ||
                                                  action.kind == ActionKind::copy_gradient);
    if (!lost) return StagedStrategy::perform(action, step);
    if (action.stage == 1) step.losses[1] = stage(1).take_loss(1);
  }
};

/// Every micro-batch counts alike, the smaller last one too.
class WeighsTheRemainderAsTheOthers : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  double weight(int, const stages::StepInProgress& step) const override {
    return 1.0 / static_cast<double>(step.plan.slices.size());
  }
};

/// The second micro-batch's gradients of the first stage count twice.
class AddsAGradientTwice : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    std::vector<at::Tensor> before;
    const bool twice = action == Action{ActionKind::backward, 0, 1};
    if (twice) {
      for (const auto& parameter : parameters(0)) before.push_back(parameter.tensor.grad().clone());
    }
    StagedStrategy::perform(action, step);
    if (!twice) return;
    const auto all = parameters(0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].tensor.mutable_grad() = 2 * all[i].tensor.grad() - before[i];
    }
  }
};

/// The second stage starts a step from the last step's gradients instead of none. Invisible in the
/// first step.
class KeepsOldGradients : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    StagedStrategy::perform(action, step);
    if (action == Action{ActionKind::backward, 1, 0}) {
      for (const auto& parameter : parameters(1)) {
        if (old_.contains(parameter.name)) parameter.tensor.mutable_grad() += old_[parameter.name];
      }
    }
    if (action == Action{ActionKind::optimizer, 1, 0}) {
      for (const auto& parameter : parameters(1)) {
        old_[parameter.name] = parameter.tensor.grad().clone();
      }
    }
  }

 private:
  std::map<std::string, at::Tensor> old_;
};

/// One stage's optimizer never runs.
class ForgetsToUpdate : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action != Action{ActionKind::optimizer, 1, 0}) {
      StagedStrategy::perform(action, step);
    }
  }
};

/// A running mean is what it was before the step, as if the buffers were not written back.
class LeavesABufferStale : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    if (action == Action{ActionKind::forward, 0, 0}) before_ = running_mean().clone();
    StagedStrategy::perform(action, step);
    if (action == Action{ActionKind::optimizer, 0, 0}) running_mean().copy_(before_);
  }

 private:
  at::Tensor running_mean() {
    for (const auto& buffer : models::buffers(stage(0).layers())) {
      if (buffer.name == "layer1.1.bn2.running_mean") return buffer.tensor;
    }
    throw std::logic_error("no such buffer");
  }

  at::Tensor before_;
};

/// A micro-batch is normalised by the running statistics, not its own.
class NormalisesByRunningStatistics : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    const bool wrong = action == Action{ActionKind::forward, 0, 1};
    if (wrong) stage(0).set_training(false);
    StagedStrategy::perform(action, step);
    if (wrong) stage(0).set_training(true);
  }
};

/// It trains as it should and reports no number.
class ReportsNoLoss : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;

 protected:
  void perform(const Action& action, stages::StepInProgress& step) override {
    StagedStrategy::perform(action, step);
    if (action == Action{ActionKind::backward, 1, 0}) {
      step.losses[0] = at::full({}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    }
  }
};

/// It evaluates another number of samples than it was asked to.
class EvaluatesTooLittle : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;
  strategies::Evaluation evaluate(const Batch& batch) override {
    return {.loss = 0.5 * PipelineOfTwo::evaluate(batch).loss};
  }
};

/// It goes on with weights from before the last update, as if what was kept of them outlived it.
class OutlivesTheUpdate : public PipelineOfTwo {
 public:
  using PipelineOfTwo::PipelineOfTwo;
  void load(const strategies::StateDictionary& state) override {
    PipelineOfTwo::load(state);
    for (const auto& [name, tensor] : state) kept_[name] = tensor.clone();
  }
  strategies::Evaluation evaluate(const Batch& batch) override {
    PipelineOfTwo::load(kept_);
    return PipelineOfTwo::evaluate(batch);
  }

 private:
  strategies::StateDictionary kept_;
};

}  // namespace stratagem::bench::broken
