// Mailbox: the exchanges of one device's stages with neighbours on other ranks.
//
// A send returns at once; its tensor is kept until the other side has it. A receive is posted ahead
// of the action that takes it, so that the next micro-batch arrives while this one is computed.
// Messages have no tags: between two ranks of a group they meet in the order of the calls, as over
// NCCL, so receives are posted in the order of the other rank's sends.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "models/layer.h"
#include "strategies/distributed/process_group.h"
#include "strategies/stages/rank_plan.h"
#include "strategies/strategy.h"

namespace stratagem::stages {

/// Returns the stage whose output, or whose output's gradient, a send or receive moves.
int producer_of(const schedules::Action& transfer);

class Mailbox {
 public:
  /// `shapes`: [stage], its output's shape for one sample. `options` and `format` are the
  /// activations'. Groups and shapes must outlive the mailbox.
  Mailbox(const strategies::RankGroups& groups, const std::vector<models::Shape>& shapes,
          at::TensorOptions options, at::MemoryFormat format)
      : groups_(groups), shapes_(shapes), options_(options), format_(format) {}

  void send(const schedules::Action& action, const at::Tensor& tensor, const RankPlan& plan);
  /// Returns the action's tensor and posts the receive that follows it.
  at::Tensor receive(const schedules::Action& action, const RankPlan& plan);
  /// Waits until all sends have arrived.
  void drain();

 private:
  struct Route {
    distributed::ProcessGroup* group = nullptr;
    int peer = 0;  // the peer's rank in the group
  };
  struct Posted {
    at::Tensor tensor;
    distributed::TransferPointer transfer;
  };

  Route route_of(const schedules::Action& action, const schedules::Schedule& schedule) const;
  void expect(const schedules::Action& receive, const RankPlan& plan);
  at::Tensor take(const schedules::Action& receive);
  void wait_for_send(const schedules::Action& sent);

  const strategies::RankGroups& groups_;
  const std::vector<models::Shape>& shapes_;
  at::TensorOptions options_;
  at::MemoryFormat format_;
  std::map<schedules::Action, Posted> posted_;
  std::map<schedules::Action, distributed::TransferPointer> sent_;
};

}  // namespace stratagem::stages
