// Mailbox: what a stage exchanges with neighbours on other ranks.
//
// A send returns at once; its tensor is kept until the other side has it. A receive posts its
// successor before it waits, so that the next micro-batch is received while this one is computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
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
  struct Directory {
    std::function<Route(const schedules::Action&)> route;          // of a send or a receive
    std::function<models::Shape(const schedules::Action&)> shape;  // of what a receive brings
    std::function<std::optional<schedules::Action>(const schedules::Action&)>
        next;  // the stage's next receive like this
  };

  /// `options` and `format` are those of activations.
  Mailbox(Directory directory, at::TensorOptions options, at::MemoryFormat format);

  void send(const schedules::Action& action, const at::Tensor& tensor);
  at::Tensor receive(const schedules::Action& action);
  /// The peer has what `sent` sent: it has answered. Forgets the tensor.
  void wait_for_send(const schedules::Action& sent);
  /// Waits until everything sent has arrived.
  void drain();

 private:
  struct Posted {
    at::Tensor tensor;
    distributed::TransferPointer transfer;
  };
  void post(const schedules::Action& receive);

  Directory directory_;
  at::TensorOptions options_;
  at::MemoryFormat format_;
  std::map<schedules::Action, Posted> posted_;
  std::map<schedules::Action, distributed::TransferPointer> sent_;
};

}  // namespace stratagem::stages
