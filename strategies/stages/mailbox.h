// Mailbox: what a stage exchanges with neighbours on other ranks.
//
// A send returns at once; its tensor is kept until the other side has it. A receive posts its
// successor before it waits, so that the next micro-batch is received while this one is computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

#include "models/layer.h"
#include "strategies/distributed/process_group.h"
#include "strategies/schedules/action.h"

namespace stratagem::stages {

class Mailbox {
 public:
  struct Route {
    distributed::ProcessGroup* group = nullptr;
    int peer = 0;  // its rank in the group
    int tag = 0;   // the same on both sides, and no other transfer's of the step
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
  /// `next`: the stage's receive after this one in the same step, if there is one.
  at::Tensor receive(const Incoming& own, const std::optional<Incoming>& next);
  /// The peer has what `sent` sent: it has answered. Forgets the tensor.
  void wait_for_send(const schedules::Action& sent);
  /// Waits until everything sent has arrived.
  void drain();

 private:
  struct Posted {
    at::Tensor tensor;
    distributed::TransferPointer transfer;
  };
  void post(const Incoming& incoming);

  at::TensorOptions options_;
  at::MemoryFormat format_;
  std::map<schedules::Action, Posted> posted_;
  std::map<schedules::Action, distributed::TransferPointer> sent_;
};

}  // namespace stratagem::stages
