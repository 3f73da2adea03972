// Mailbox: what a stage exchanges with neighbours on other ranks.
//
// A send returns at once; its tensor is kept until the other side has it. A receive is posted ahead
// of the action that takes it, so that the next micro-batch is received while this one is computed.
// Messages have no tags: those between two ranks of a group meet in the order of the calls, as over
// NCCL, so receives are posted in the order in which the other rank sends.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>

#include "models/layer.h"
#include "strategies/distributed/process_group.h"
#include "strategies/schedules/action.h"

namespace stratagem::stages {

class Mailbox {
 public:
  struct Route {
    distributed::ProcessGroup* group = nullptr;
    int peer = 0;  // its rank in the group
  };
  struct Incoming {
    schedules::Action action;  // the receive
    Route route;
    models::Shape shape;
  };

  /// `options` and `format` are those of activations.
  Mailbox(at::TensorOptions options, at::MemoryFormat format)
      : options_(options), format_(format) {}

  void send(const schedules::Action& action, const at::Tensor& tensor, const Route& route);
  /// Posts the receive, unless it was.
  void expect(const Incoming& incoming);
  /// What an expected receive brings.
  at::Tensor take(const schedules::Action& receive);
  /// Forgets what `sent` has sent, if it did: the peer has it, or it is waited for.
  void wait_for_send(const schedules::Action& sent);
  /// Waits until everything sent has arrived.
  void drain();

 private:
  struct Posted {
    at::Tensor tensor;
    distributed::TransferPointer transfer;
  };

  at::TensorOptions options_;
  at::MemoryFormat format_;
  std::map<schedules::Action, Posted> posted_;
  std::map<schedules::Action, distributed::TransferPointer> sent_;
};

}  // namespace stratagem::stages
