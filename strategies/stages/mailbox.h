// Mailbox: what the stages of one device exchange with neighbours on other ranks.
//
// A send returns at once; its tensor is kept until the other side has it. A receive is posted ahead
// of the action that takes it, so that the next micro-batch is received while this one is computed.
// Messages have no tags: those between two ranks of a group meet in the order of the calls, as over
// NCCL, so receives are posted in the order in which the other rank sends.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "models/layer.h"
#include "strategies/distributed/process_group.h"
#include "strategies/stages/rank_plan.h"
#include "strategies/strategy.h"

namespace stratagem::stages {

/// Which stage's output, or the gradient of which stage's output, a send or receive moves.
int producer_of(const schedules::Action& transfer);

class Mailbox {
 public:
  /// `shapes`: [stage], of its output for one sample. `options` and `format` are those of
  /// activations. Groups and shapes outlive the mailbox.
  Mailbox(const strategies::RankGroups& groups, const std::vector<models::Shape>& shapes,
          at::TensorOptions options, at::MemoryFormat format)
      : groups_(groups), shapes_(shapes), options_(options), format_(format) {}

  void send(const schedules::Action& action, const at::Tensor& tensor, const RankPlan& plan);
  /// What the action brings; the receive that follows it is posted.
  at::Tensor receive(const schedules::Action& action, const RankPlan& plan);
  /// Waits until everything sent has arrived.
  void drain();

 private:
  struct Route {
    distributed::ProcessGroup* group = nullptr;
    int peer = 0;  // its rank in the group
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
